"""Whether a model fits a machine, and what bounds it there: arithmetic over the figures of the profiles.

`ledger`, `roofline`, `collectives` and `measured` are formulas over plain numbers and know no targets; a unit is in
every name that holds a quantity. `products` reads what the profiles say of each product, `assess` puts both together.
"""
