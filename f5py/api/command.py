"""A command of the catalogue: its names and words, and its options object from keyword arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

from f5py.messages import console

#: Told the unit, how many are done, and of how many; see `f5py.messages.progress`.
Listener = Callable[[str, int, "int | None"], object]


class Function(NamedTuple):
    """A function of ``import f5py`` that does what a command does; `f5py.api.functions` makes it."""

    name: str
    way: str  # how it comes to its result, one of the methods of `f5py.api.functions.Ways`
    # does, more: the title of its documentation, and what follows that
    does: str
    more: str = ""
    rows: str = ""  # what its parameter `returns` does; none if it has no such parameter
    # returns, returned: types of the result, and its meaning
    returns: str = ""
    returned: str = ""
    also_raises: str = ""  # when an error is raised besides wrong options, input and output
    example: str = ""  # for doctest, in a folder where the examples of the functions before have run
    annotation: str = "None"  # type of the result in the stub; of tables and pictures, that when they are written
    has_progress: bool = True  # it has a parameter `progress`
    # options with which there are no rows to return, and their values of which that holds; none: of all
    without_rows: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    what: str = ""  # what is written, where that needs an output
    written_from: str = ""  # option without which nothing is written
    columns: Mapping[str, str] = MappingProxyType({})  # names and Arrow types of a table of text


class Command(NamedTuple):
    """One of f5py's commands."""

    name: str  # as the command line has it
    # whole name of the class, or its name below `f5py.options`; imported when needed, as making classes takes time
    options_class: str
    # module, function: where what it does is found
    module: str
    title: str  # its line in the help of all commands
    help: str  # its own help, above the options
    examples: tuple[str, ...]  # command lines for the help
    function: str = "run"
    reports_resources: bool = False  # version, time and memory are printed at its end
    functions: tuple[Function, ...] = ()  # those of ``import f5py``; none: it is for the command line only

    @property
    def options(self) -> Any:
        """The options class."""
        module, _, name = self.options_class.rpartition(".")
        return getattr(import_module(module if module.startswith("f5py.") else f"f5py.options.{module}"), name)

    def run(self, given: Mapping[str, Any], *more: Any, progress: Listener | None = None) -> Any:
        """Do what the command does.

        Parameters
        ----------
        *more : Any
            What its function takes besides the options.

        Raises
        ------
        TypeError
            A keyword is none of the command's, or one that is required is missing.
        F5pyError
            What the command raises.
        """
        if given.get("engine") == "dask" and given.get("scheduler") is None:
            from f5py.runs.clusters.dask_cluster import begin_workers

            begin_workers(self.module)  # first of all: they need longest to start
        from f5py.api.values import GivenFiles
        from f5py.io.files.inputs_in_use import inputs_in_use
        from f5py.messages.progress import told_to
        from f5py.options.declaration import paths_read

        with GivenFiles() as files, files.told(), told_to(progress), ExitStack() as inputs:
            options = self.chosen(given, files)
            inputs.enter_context(inputs_in_use(paths_read(options)))
            try:
                result = getattr(import_module(self.module), self.function)(options, *more)
            except BrokenPipeError:
                files.finish()  # which raises what has broken the pipe, if that was one of ours
                raise
            files.finish()
        return result

    def by_field(self, given: Mapping[str, Any], function: str) -> dict[str, Any]:
        """Put the names of fields in the place of others of the options' long names, such as `region` for `window`.

        Raises TypeError if an option is given under several.
        """
        from f5py.options import declarations

        fields = {
            spelling[2:].replace("-", "_"): field
            for field, option in declarations(self.options).items()
            for spelling in option.spellings
            if spelling.startswith("--")
        }
        found: dict[str, Any] = {}
        for name, value in given.items():
            field = name if name in self._option_fields else fields.get(name, name)
            if field in found:
                raise TypeError(f"{function}() got multiple values for option {field!r}, one of them as {name!r}")
            found[field] = value
        return found

    def check_keywords(self, given: Mapping[str, Any], function: str | None = None) -> None:
        """Raise TypeError for keywords that are none of the command's, and required ones that are missing.

        Parameters
        ----------
        function : str, optional
            Name of the function that was called.
        """
        from f5py.options import declarations
        from f5py.options.declaration import REQUIRED

        called = function or next((one.name for one in self.functions), self.name)
        for name in given:
            if name not in self._option_fields:
                from difflib import get_close_matches

                near = get_close_matches(name, self._option_fields, n=1)
                more = f"; did you mean {near[0]}?" if near else ""
                raise TypeError(f"{called}() has no option {name!r}{more}")
        missing = [
            name
            for name, option in declarations(self.options).items()
            if option.default is REQUIRED
            and name not in given
            and all(given.get(other) is None for other in option.unless)
        ]
        if missing:
            raise TypeError(f"{called}() needs {' and '.join(missing)}")

    def chosen(self, given: Mapping[str, Any], files: Any) -> Any:
        """Make the options object; values of a profile stand in for what is not given."""
        from f5py.api.values import option_value
        from f5py.options import declarations

        self.check_keywords(given)
        declared = declarations(self.options)
        values = {
            name: option_value(name, declared[name], value, files) if name in declared else value
            for name, value in given.items()
        }
        if "command_line" in self._option_fields and "command_line" not in values:
            values["command_line"] = self.command_line(values)
        if (profile := values.pop("profile", None)) is not None:
            values = self._with_profile(profile, values)
        return self.options(**values)

    def command_line(self, values: Mapping[str, Any]) -> str:
        """Write the command line that does the same."""
        import shlex

        from f5py.options import Kind, declarations

        words, positional = ["f5py", self.name], []
        for name, option in declarations(self.options).items():
            value = values.get(name, option.default)
            if value == option.default:
                continue
            if option.is_argument:
                positional += list(value) if option.repeated else [value]
                continue
            spelling = option.names[-1]
            if option.kind is Kind.FLAG:
                words.append(spelling)
            elif option.kind is Kind.YES_NO:
                words.append(f"{spelling}={'yes' if value else 'no'}")
            else:
                for one in value if option.repeated else [value]:
                    words += [spelling, str(one)]
        return shlex.join([*words, *positional])

    @property
    def _option_fields(self) -> Mapping[str, Any]:
        fields: Mapping[str, Any] = self.options.__dataclass_fields__
        return fields

    def _with_profile(self, name: str, values: dict[str, Any]) -> dict[str, Any]:
        from f5py.options import declarations
        from f5py.options.cores import usable_cores
        from f5py.options.profiles import PROFILES, load_profile

        profile = load_profile(name).values()
        if name in PROFILES:  # those of kinds of machines, of which this one may be a small part
            profile["threads"] = min(profile["threads"], usable_cores())
        if "gpu" in values:
            profile.pop("disable_cuda", None)
        values = {option: value for option, value in profile.items() if option in self._option_fields} | values
        defaults = {option: declared.default for option, declared in declarations(self.options).items()}
        shown = defaults | profile | values
        console.note(
            "set_opt_profile",
            f"max-lf: {shown['cuda_max_lf']:.1f}, avg-epk: {shown['cuda_avg_epk']:.1f}, "
            f"max-epk: {shown['cuda_max_epk']:.1f}, K: {shown['batchsize'] or 'auto'}, "
            f"B: {shown['max_bases'] / 1e6:.1f}M, t: {shown['threads']}, "
            f"ultra-thresh: {shown['ultra_thresh'] / 1e3:.1f}k, iop: {shown['iop'] or 'auto'}",
        )
        return values
