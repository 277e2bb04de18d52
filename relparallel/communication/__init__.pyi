from .descent import delayed_descent as delayed_descent
from .problems import logistic_problem as logistic_problem, network_problem as network_problem
