"""Every method of the comparison (methods 7 to 9), one file each, its citation on top."""
