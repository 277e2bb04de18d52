"""What each part contributes: importance, failure frequency and derivatives from one sweep back."""
