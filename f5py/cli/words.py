"""Command lines as getopt reads them: unambiguous abbreviations, and options whose value may be left out."""

from __future__ import annotations

from collections.abc import Iterable

from f5py.errors import UsageError
from f5py.options import Kind, Option

#: Options of every command.
COMMON = ("-h", "--help", "-V", "--version", "--help-all", "--quiet", "--log-file")
#: Those that are never abbreviated.
_OF_MESSAGES = ("--help-all", "--quiet", "--log-file")


def expand(words: list[str], options: Iterable[Option]) -> list[str]:
    """Write every option out: long names whole, and a value where one may be missing and is.

    Raises `UsageError` if an abbreviation stands for several options, or an option with one value is given twice. What
    the parser, which knows whole names only, does not understand is left as it is.

    Parameters
    ----------
    words : list of str
        What stands after the name of the command.
    """
    by_name: dict[str, Option | None] = {name: None for name in COMMON}
    for option in options:
        by_name.update(dict.fromkeys(option.spellings, option))
    given: dict[str, str] = {}
    expanded: list[str] = []
    rest = iter(words)
    pending: list[str] = []
    while (word := pending.pop() if pending else next(rest, None)) is not None:
        if word == "--":
            expanded += [word, *rest]
            break
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            name = _whole_name(name, by_name)
            option_or_none = by_name.get(name)
            takes_next = option_or_none is not None and option_or_none.kind is not Kind.FLAG and not equals
            _check_once(name, option_or_none, given)
            expanded.append(name + equals + value)
        elif word.startswith("-") and len(word) > 1:
            cluster = _in_cluster(word, by_name)
            for name, option in cluster:
                _check_once(name, option, given)
            option_or_none = cluster[-1][1] if cluster else None
            is_last = len(cluster) == len(word) - 1
            takes_next = option_or_none is not None and option_or_none.kind is not Kind.FLAG and is_last
            expanded.append(word)
        else:
            expanded.append(word)
            continue
        if not takes_next or option_or_none is None:
            continue
        value_word = next(rest, None)
        if option_or_none.value_may_lack is not None and not _is_value(value_word, option_or_none):
            expanded.append(str(option_or_none.value_may_lack))
            if value_word is not None:
                pending.append(value_word)
        elif value_word is not None:
            expanded.append(value_word)
    return expanded


def _whole_name(name: str, by_name: dict[str, Option | None]) -> str:
    """Complete an abbreviated long name; return `name` itself if it is none."""
    if name in by_name:
        return name
    candidates = {
        known: option
        for known, option in by_name.items()
        if known.startswith(name) and known.startswith("--") and known not in _OF_MESSAGES
        if option is None or known not in option.foreign
    }
    old = {known: option for known, option in candidates.items() if option is None or not option.ours}
    candidates = old or candidates  # what f5c understands stays what it was
    if len({known if option is None else option.names[-1] for known, option in candidates.items()}) > 1:
        raise UsageError(f"option {name} is ambiguous: it could be {', '.join(sorted(candidates))}")
    return next(iter(candidates), name)


def _in_cluster(word: str, by_name: dict[str, Option | None]) -> list[tuple[str, Option]]:
    """List the options of a word of short ones, up to one that takes a value or is not known."""
    found = []
    for letter in word[1:]:
        option = by_name.get(f"-{letter}")
        if option is None:
            break
        found.append((f"-{letter}", option))
        if option.kind is not Kind.FLAG:
            break
    return found


def _check_once(name: str, option: Option | None, given: dict[str, str]) -> None:
    """Raise `UsageError` if an option that takes one value has been given before.

    Parameters
    ----------
    name : str
        As it is written this time.
    option : Option or None
        None for those of every command.
    given : dict of str to str
        How the options before are written, by their spelling; added to.
    """
    if option is None and name not in _OF_MESSAGES:
        return
    if option is not None and (option.repeated or option.refused is not None):
        return
    key = name if option is None else option.spelling
    if key not in given:
        given[key] = name
        return
    which = f"{name} is given twice" if given[key] == name else f"{given[key]} and {name} are one option, given twice"
    commas = option is not None and option.listed
    raise UsageError(f"{which}; {'write several values with commas' if commas else 'leave one out'}")


def _is_value(word: str | None, option: Option) -> bool:
    """Return whether a word is the value of an option that may lack one: a choice, or else a number."""
    if word is None:
        return False
    return word in option.choices if option.choices else word.isascii() and word.isdigit()
