"""The command line of `tarantool`: options up to the script, whose arguments follow."""

from __future__ import annotations

from collections.abc import Sequence

OPTIONS_WITH_ARGUMENT = "el"
OPTIONS = "hvVi"
LONG_OPTIONS = {"--help": "h", "--version": "v"}


class UsageError(Exception):
    """The command line is wrong."""


class CommandLine:
    """A command line.

    Parameters:
        arguments: what follows the program's name.

    Attributes:
        answer: `h` if help is asked for, `v` for the version; otherwise empty.
        is_interactive: whether a console is to follow the script.
        steps: what is done before the script, in order: `e` with a chunk, or `l` with the name of a module.
        script: the path of the script; `-` for standard input; None if none is given.
        script_arguments: the arguments of the script.

    Raises:
        UsageError: an option is unknown, or lacks its argument.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self.answer = ""
        self.is_interactive = False
        self.steps: list[tuple[str, str]] = []
        rest = self._options(list(arguments))
        self.script = rest[0] if rest else None
        self.script_arguments = rest[1:]

    def _options(self, rest: list[str]) -> list[str]:
        """Take the options. Returns what follows them."""
        while rest and rest[0].startswith("-") and rest[0] != "-" and not self.answer:
            word = rest.pop(0)
            if word == "--":
                break
            if word in LONG_OPTIONS:
                self.answer = LONG_OPTIONS[word]
            elif word.startswith("--"):
                raise UsageError(f"unrecognized option '{word}'")
            else:
                self._letters(word[1:], rest)
        return rest

    def _letters(self, letters: str, rest: list[str]) -> None:
        """Take options of one letter each, written together; the last one may have an argument."""
        while letters and not self.answer:
            letter, letters = letters[0], letters[1:]
            if letter in OPTIONS_WITH_ARGUMENT:
                if not letters and not rest:
                    raise UsageError(f"option requires an argument -- '{letter}'")
                self.steps.append((letter, letters or rest.pop(0)))
                letters = ""
            elif letter == "i":
                self.is_interactive = True
            elif letter in OPTIONS:
                self.answer = letter.lower()
            else:
                raise UsageError(f"invalid option -- '{letter}'")
