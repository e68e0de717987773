"""The first tokens of a text of any length, with work and memory bounded by the tokens used.

A part of the text is tokenized, the last word of the part is left for the next part, and so on. Words are
the tokenizer's: a word ends at white space, at punctuation and around each CJK character, and no token
crosses the end of a word. `tests/unit/coldframe/model/test_tokenizer.py` compares with whole texts.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING
from unicodedata import category, combining, normalize

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_PART = 4096  # characters
_CERTAINLY_UNKNOWN = 101  # characters: WordPiece gives a word of more than 100 the token [UNK]
_LONGEST_SPECIAL = len("[MASK]")
_SEAM = "\0"  # ignored by the tokenizer, except that no special token crosses it


def first_tokens(
    tokenizer: "Tokenizer", text: str, at_most: int, check_time: Callable[[], None]
) -> list[int]:
    """The first `at_most` token ids of `text`, without [CLS] and [SEP].

    check_time: called before each part; its exception ends the work.
    """
    ids: list[int] = []
    position, head = 0, ""  # head: the word that continues at `position`, without ignored characters
    while position < len(text) and len(ids) < at_most:
        check_time()
        end = _end_of_part(text, position)
        part = head + text[position:end]
        encoding = tokenizer.encode(part, add_special_tokens=False)
        if end == len(text):
            ids += encoding.ids
            break
        complete = _tokens_before_last_word(encoding.word_ids)
        ids += encoding.ids[:complete]
        if complete:
            position = _start_of_marks(text, position + encoding.offsets[complete][0] - len(head), position)
            head = ""
        else:
            position, head = end, _only_word(tokenizer, part)
    return ids[:at_most]


def _end_of_part(text: str, start: int) -> int:
    """End of a part: never within a special token, nor within combining marks, unless the part has nothing
    else.
    """
    end = min(start + _PART, len(text))
    if end == len(text):
        return end
    bracket = text.rfind("[", end - _LONGEST_SPECIAL + 1, end)
    if bracket > start:
        return bracket
    marks = _start_of_marks(text, end, start)
    return marks if marks > start else end


def _start_of_marks(text: str, position: int, least: int) -> int:
    """Start of the combining marks around `position`; `position` if there are none.

    The tokenizer sorts adjacent marks, so the original place of one of them is lost.
    """
    if not _is_mark(text[position]):
        return position
    while position > least and _is_mark(text[position - 1]):
        position -= 1
    return position


def _is_mark(character: str) -> bool:
    """Whether a character is a combining mark, decomposes into marks, or is ignored between them."""
    if combining(normalize("NFD", character)[0]):
        return True
    return category(character).startswith("C") and not character.isspace()


def _tokens_before_last_word(word_ids: list[int]) -> int:
    return word_ids.index(word_ids[-1]) if word_ids else 0


def _only_word(tokenizer: "Tokenizer", part: str) -> str:
    """The word of a part that has at most one word, if it is so short that the next part stays short."""
    nothing = [ord(character) for character in set(part) if not tokenizer.normalizer.normalize_str(character)]
    left = part.translate(dict.fromkeys(nothing))
    word = left.strip()[:_CERTAINLY_UNKNOWN]
    return word + (" " if left[-1:].isspace() else "") + _SEAM
