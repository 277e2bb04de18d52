"""What is read from draws of the errors."""

import numpy as np

from relparallel.planning.doubt import Doubt


def test_the_loss_is_the_mean_of_what_is_lost_and_the_chance_counts_the_best():
    shares = np.array([[1.0, 0.5], [0.8, 1.0], [1.0, 0.9], [1.0, 0.4]])
    doubt = Doubt(search=None, choices=(), shares=shares, measured=np.zeros(2, dtype=bool))
    assert doubt.probability.tolist() == [0.75, 0.25]
    assert np.allclose(doubt.loss, [0.05, 0.3], rtol=1e-12, atol=0)
