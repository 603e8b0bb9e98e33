"""The two roads on which the rows of a data file come to Spark and from there, and which file takes which."""
