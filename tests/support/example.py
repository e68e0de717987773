"""Labels of the example's model, which tells newsgroups apart: the one place where tests know them."""

SPACE = "sci.space"
CRYPTOGRAPHY = "sci.crypt"
BASEBALL = "rec.sport.baseball"
HOCKEY = "rec.sport.hockey"
MOTORCYCLES = "rec.motorcycles"
