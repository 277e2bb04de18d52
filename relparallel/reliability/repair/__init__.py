"""Parts that fail and are repaired: availability, Markov chains, common cause, expected delivery."""
