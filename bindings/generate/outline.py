# SPDX-License-Identifier: Apache-2.0
"""Tells which comment of a header belongs to what.

- The first comment is that of the header.
- A comment that begins with ---- starts a section: title, then text about the whole section.
- A comment directly above an item is the item's; one after it on its last line is its note.
- An item without a comment of its own, directly below another item, shares that item's comment.
- Any other comment is text of its section.

The words Local, Result and Errors (words.py) of a header, a section or a text hold for the items
below that do not say otherwise. So do those of the function above in a comment that begins with
"The same".
"""
import re

from . import words

WORDS = ("ranks", "result", "errors")
IGNORED = re.compile(r"/\* clang-format (?:on|off) \*/")


class Said:
    """What the comments say about one item."""

    def __init__(self, comment, note, group, defaults, section):
        self.comment, self.note, self.section = comment, note, section
        self.group = group  # the item whose comment this one shares: (name, Said), or None
        self.defaults = defaults
        self.split = words.split(comment)
        for word, sentence in words.split(note).items():
            if word in WORDS and sentence:
                self.split[word] = sentence

    def own(self, word):
        return self.split[word] or (self.group[1].own(word) if self.group else None)

    def inherited(self, word):
        return self.defaults.get(word)

    def word(self, word):
        return self.own(word) or self.inherited(word)

    def comment_of_group(self):
        above = self.group[1].comment_of_group() if self.group else []
        return above + self.comment + self.note

    def prose(self):
        """Everything that is said about the item, also about its whole section."""
        return " ".join([*self.comment_of_group(), self.defaults.get("prose", "")])

    def entry(self):
        """The parts of the description that are made of comments only."""
        found = {"section": self.section} if self.section else {}
        if self.comment:
            found["comment"] = self.comment
            if self.split["description"] != self.comment:
                found["description"] = self.split["description"]
        if self.note:
            found["note"] = self.note
        if self.group:
            found["documented_by"] = self.group[0]
        return found


class Outline:
    """The sections of one header."""

    def __init__(self, header, of_others):
        self.header = header
        comments = [c for c in header.comments if not IGNORED.fullmatch(c.text)]
        self.text = words.text_of(comments[0].text.replace("SPDX-License-Identifier: Apache-2.0",
                                                           "", 1))
        inside = [(i.first, i.last) for i in header.items if i.kind in ("struct", "enum")]
        self.comments = [c for c in comments[1:]
                         if not any(a <= c.first and c.last < b for a, b in inside)]
        self.defaults = self.words_of(self.text)
        other = re.search(r"Included by (\w+\.h), which says", " ".join(self.text))
        if other:
            self.defaults = {**of_others[other.group(1)], **self.defaults}
        self.sections = [{"title": "", "text": [], "items": []}]

    def words_of(self, text):
        found = words.split(text)
        all_local = re.search(r"All (?:ops|functions) are Local", " ".join(text))
        if all_local and not found["ranks"]:
            found["ranks"] = "Local."
        scope = re.search(r"\(Result: scope\)", " ".join(text))
        if scope and not found["result"]:
            found["result"] = "Result: scope."
        return {word: found[word] for word in WORDS if found[word]}

    def items(self):
        """(item, Said) in the order of the file; fills in the sections."""
        pending = list(self.comments)
        defaults, previous, above = self.defaults, None, {}
        for item in self.header.items:
            while pending and pending[0].last < item.first - 1:
                defaults = self.free_text(pending.pop(0), defaults)
            comment, note = [], []
            if pending and pending[0].own_line and pending[0].last == item.first - 1:
                comment = words.text_of(pending.pop(0).text)
            if pending and not pending[0].own_line and pending[0].first == item.last:
                note = words.text_of(pending.pop(0).text)
            group = None
            if previous and not comment and previous[0].last == item.first - 1:
                group = previous[1].group or (previous[0].name, previous[1])
                if not group[1].comment:
                    group = None
            same = " ".join(comment).startswith("The same")
            said = Said(comment, note, group, {**defaults, **(above if same else {})},
                        self.sections[-1]["title"])
            yield item, said
            previous = (item, said)
            if item.kind == "function":
                above = {w: said.word(w) for w in WORDS if said.word(w)}
                above["prose"] = said.prose()
            if not item.name.startswith("ctn_") or item.kind != "macro":
                self.sections[-1]["items"].append(item.name)
        for comment in pending:
            self.free_text(comment, defaults)

    def free_text(self, comment, defaults):
        """Adds a section or a text; returns the words that hold from here on."""
        lines = words.lines_of(comment.text)
        title = re.fullmatch(r"-{4} (.*?) -+", lines[0])
        if title:
            text = words.text_of("\n".join(lines[1:]))
            self.sections.append({"title": title.group(1), "text": text, "items": []})
            return {**self.defaults, **self.words_of(text), "prose": " ".join(text)}
        text = words.text_of(comment.text)
        self.sections[-1]["items"].append({"text": text})
        prose = " ".join([defaults.get("prose", ""), *text])
        return {**defaults, **self.words_of(text), "prose": prose}

    def entry(self):
        return {"text": self.text, "sections": [s for s in self.sections if s["items"]]}
