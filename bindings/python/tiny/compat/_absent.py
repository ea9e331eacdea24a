"""Names that tinygrad has and tiny has not: they can be imported and compared, not used."""


class _Kind(type):
    def __getattr__(cls, name):
        if name.startswith("_"):  # which inspect looks for
            raise AttributeError(name)
        raise NotImplementedError(f"{cls.__module__}.{cls.__qualname__}.{name}: tiny has no such part")

    def __call__(cls, *arguments, **keywords):
        raise NotImplementedError(f"{cls.__module__}.{cls.__qualname__}: tiny has no such part")


def absent(module, name):
    """A class of that name which nothing is an instance of, and which raises NotImplementedError when it is used."""
    return _Kind(name, (), {"__module__": module.replace("tiny.compat.", "")})


def names_of(module):
    """A module's __getattr__: any public name."""
    def get(name):
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return absent(module, name)
    return get
