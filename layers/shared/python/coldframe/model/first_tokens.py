"""The first tokens of a text of any length: work and memory depend on what is used, not on what was sent.

A part of the text is tokenized, the last word of the part is left for the next part, and so on. Words are
the tokenizer's: it ends one at white space, at punctuation and around each CJK character, and no token
reaches across the end of a word. `tests/unit/coldframe/model/test_tokenizer.py` compares with whole texts.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING
from unicodedata import category, combining, normalize

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_PART = 4096  # characters
_CERTAINLY_UNKNOWN = 101  # characters: WordPiece gives a word of more than 100 the token [UNK]
_LONGEST_SPECIAL = len("[MASK]")
_SEAM = "\0"  # nothing to the tokenizer; and no special token is found across it


def first_tokens(
    tokenizer: "Tokenizer", text: str, at_most: int, check_time: Callable[[], None]
) -> list[int]:
    """The first `at_most` token ids of `text`, without [CLS] and [SEP].

    check_time: called before each part; what it raises ends the work.
    """
    ids: list[int] = []
    position, begun = 0, ""  # begun: the word that goes on at `position`, without what is nothing in it
    while position < len(text) and len(ids) < at_most:
        check_time()
        end = _end_of_part(text, position)
        part = begun + text[position:end]
        found = tokenizer.encode(part, add_special_tokens=False)
        if end == len(text):
            ids += found.ids
            break
        complete = _tokens_before_last_word(found.word_ids)
        ids += found.ids[:complete]
        if complete:
            position = _start_of_marks(text, position + found.offsets[complete][0] - len(begun), position)
            begun = ""
        else:
            position, begun = end, _only_word(tokenizer, part)
    return ids[:at_most]


def _end_of_part(text: str, start: int) -> int:
    """A part never ends within a special token, nor, unless it is nothing else, within combining marks."""
    end = min(start + _PART, len(text))
    if end == len(text):
        return end
    bracket = text.rfind("[", end - _LONGEST_SPECIAL + 1, end)
    if bracket > start:
        return bracket
    marks = _start_of_marks(text, end, start)
    return marks if marks > start else end


def _start_of_marks(text: str, position: int, least: int) -> int:
    """Where the combining marks begin that `position` is among; `position` if it is not.

    The tokenizer sorts marks that follow each other: where in the text one of them stood is lost.
    """
    if not _is_mark(text[position]):
        return position
    while position > least and _is_mark(text[position - 1]):
        position -= 1
    return position


def _is_mark(character: str) -> bool:
    """Whether a character is a combining mark, is taken apart into marks, or is nothing between them."""
    if combining(normalize("NFD", character)[0]):
        return True
    return category(character).startswith("C") and not character.isspace()


def _tokens_before_last_word(word_ids: list[int]) -> int:
    return word_ids.index(word_ids[-1]) if word_ids else 0


def _only_word(tokenizer: "Tokenizer", part: str) -> str:
    """The word of a part that has one at most, so short that the next part is not much longer for it."""
    nothing = [ord(character) for character in set(part) if not tokenizer.normalizer.normalize_str(character)]
    left = part.translate(dict.fromkeys(nothing))
    word = left.strip()[:_CERTAINLY_UNKNOWN]
    return word + (" " if left[-1:].isspace() else "") + _SEAM
