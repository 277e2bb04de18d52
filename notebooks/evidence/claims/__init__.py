"""Every number of the ledger that the models compute again, one module for each topic.

`registry` reads their tables: one entry for each pattern of rows, a function from inputs to a
value.
"""
