"""The commands of maintenance and the doctor, one in each module; ``records`` describes them."""
