"""What each part contributes: importance and derivatives from one sweep back."""
