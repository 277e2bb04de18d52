from .descent import delayed_descent as delayed_descent, quadratic_gradient as quadratic_gradient
from .staleness import largest_stable_step as largest_stable_step, stable_step as stable_step
