"""A catalog of Icefield as a catalog of Spark: Java classes that Spark compiles, and Python objects behind them."""
