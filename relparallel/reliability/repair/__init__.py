"""Parts that fail and are repaired: availability, Markov chains, likely states."""
