# SPDX-License-Identifier: Apache-2.0
"""The error of all generators. In a file of its own so that those that only read the description
do not need libclang."""


class Wrong(Exception):
    """The headers or the table contradict the rules; the text says what to change."""
