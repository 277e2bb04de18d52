"""The designs: one function each, with its closed forms, symmetries and layout in its decorator."""
