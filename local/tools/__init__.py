"""Scripts of developers: images, lock files, SAM, and a rule of imports."""
