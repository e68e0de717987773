"""How far a text is from what a model knows, as a share of the validation rows.

The share is the same kind of number for every model and every way to look at a text: 0.99 says that the text
is stranger than 99 % of the validation rows. What is behind it, the *strangeness*, only has an order.

Standard library only: the express lane of a cold start uses this. `centroids.py` has the part for embeddings.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence


def share_more_usual(strangeness: float, usual: Sequence[float]) -> float:
    """Share of the validation rows that look more usual than a text, 0 to 1.

    usual: strangeness of validation rows, ascending; at least one.
    """
    return bisect_left(usual, strangeness) / len(usual)


def strangeness_of(evidence: Sequence[float]) -> float:
    """Strangeness of a text by its tokens: minus the length of the estimator's evidence, (k,).

    Tokens that training did not see, or saw under every label, say nothing for any label and against none.
    """
    return -math.hypot(*evidence)
