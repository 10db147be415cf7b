# SPDX-License-Identifier: Apache-2.0
"""Networks by name, with the names and shapes of published weights."""
from . import _core
from .nn import Native


def make(name, **options):
    """A network by its name: make("resnet50", classes=10)."""
    return Native(_core.zoo_new(name, **options))


def open(path):  # noqa: A001
    """The network that the config.json of a published model describes. Load its weights with
    load(path)."""
    return Native(_core.zoo_open(str(path)))


def __getattr__(name):
    """resnet(depth=50), gpt(vocabulary=50257), ...: functions named zoo_... of the library."""
    function = getattr(_core, "zoo_" + name, None)
    if function is None:
        raise AttributeError(f"the zoo has no {name}")

    def network(*args, **options):
        return Native(function(*args, **options))

    network.__name__ = name
    network.__doc__ = function.__doc__
    return network
