"""Parts that fail and are repaired: availability, Markov chains, common cause, mean delivery."""
