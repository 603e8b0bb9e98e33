"""A catalog of Spark that is one of Icefield: classes that Spark compiles, and the objects that answer them."""
