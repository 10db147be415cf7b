# SPDX-License-Identifier: Apache-2.0
"""Writes the list of what a package consists of, as SPDX 2.3 in JSON, beside the package.

The list is made from what the environment knows: the libraries that bundle.add_libraries() found,
with the source package and version of each from dpkg, and its licence from the file that Debian
keeps for it. For a Debian package it has the packages that it depends on.
"""
import datetime
import hashlib
import json
import re
import uuid

import bundle

# Names in Debian's copyright files, where they are not those of SPDX.
NAMES = {"Expat": "MIT", "BSD-2-clause": "BSD-2-Clause", "BSD-3-clause": "BSD-3-Clause",
         "BSD-2-Clause": "BSD-2-Clause", "BSD-3-Clause": "BSD-3-Clause", "Apache-2.0": "Apache-2.0",
         "MIT": "MIT", "Zlib": "Zlib", "zlib": "Zlib", "ZLIB": "Zlib",
         "GPL-2": "GPL-2.0-only", "GPL-2+": "GPL-2.0-or-later", "GPL-3+": "GPL-3.0-or-later",
         "LGPL-2.1": "LGPL-2.1-only", "LGPL-2.1+": "LGPL-2.1-or-later"}
# Of source packages whose copyright file is plain text, and for the libraries in use here.
KNOWN = {"gcc-14": "GPL-3.0-or-later WITH GCC-exception-3.1", "hwloc": "BSD-3-Clause",
         "libjpeg-turbo": "IJG AND BSD-3-Clause AND Zlib", "glibc": "LGPL-2.1-or-later"}


def license_of(text):
    """(SPDX expression or NOASSERTION, the words of Debian's copyright file) for all files."""
    for paragraph in re.split(r"\n\s*\n", text):
        files = re.search(r"^Files: *\*", paragraph, re.M)
        found = re.search(r"^License: *(.+)$", paragraph, re.M)
        if files and found:
            words = re.split(r"( and | or )", found[1].strip())
            if all(w in NAMES or w in (" and ", " or ") for w in words):
                return "".join(NAMES.get(w, w.upper()) for w in words), found[1].strip()
            return "NOASSERTION", found[1].strip()
    return "NOASSERTION", None


def entry(index, part, libraries):
    """One library or package."""
    declared, words = license_of(part["text"])
    name, number = part["name"], part["version"]
    declared = KNOWN.get(name, declared)
    comment = f"Debian's copyright file says: {words}" if words else "See the licence file."
    return {
        "SPDXID": f"SPDXRef-Package-{index}", "name": name, "versionInfo": number,
        "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": declared,
        "licenseComments": comment, "copyrightText": "NOASSERTION",
        "sourceInfo": f"source package of Debian 13; used: {', '.join(libraries)}",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:deb/debian/{name}@{number}?arch=source"}]}


def document(target, parts, relation):
    """Writes the list for the package in the file target. parts: {library: where it comes from}."""
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    date = datetime.datetime.fromtimestamp(bundle.source_date(), datetime.timezone.utc)
    sources = {}
    for library, part in parts.items():
        sources.setdefault((part["name"], part["version"]), (part, []))[1].append(library)
    packages = [{
        "SPDXID": "SPDXRef-Package-0", "name": "catena", "versionInfo": bundle.version(),
        "packageFileName": target.name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}]}]
    packages += [entry(i, *sources[key]) for i, key in enumerate(sorted(sources), 1)]
    relationships = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                      "relatedSpdxElement": "SPDXRef-Package-0"}]
    relationships += [{"spdxElementId": "SPDXRef-Package-0", "relationshipType": relation,
                       "relatedSpdxElement": p["SPDXID"]} for p in packages[1:]]
    result = target.with_name(f"{target.name}.spdx.json")
    result.write_text(json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": target.name,
        "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}",
        "creationInfo": {"created": date.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: dev/package"]},
        "packages": packages, "relationships": relationships}, indent=2) + "\n", encoding="utf-8")
    return result


def write(target, parts):
    """For a package that contains its libraries."""
    return document(target, parts, "CONTAINS")


def write_deb(target):
    """For a Debian package, which depends on those of other libraries."""
    def inside(*command):
        return bundle.run(bundle.TOP / "dev" / "package-shell", *command)

    names = re.findall(r"(?:^|, )([a-z0-9.+-]+)", inside("dpkg-deb", "-f", target, "Depends"))
    parts = {}
    for name in names:
        found = inside("bash", "-c", "dpkg-query -W -f '${source:Package} ${source:Version}' \"$0\""
                       " && echo && cat \"/usr/share/doc/$0/copyright\" || true", name)
        first, _, text = found.partition("\n")
        if first:
            source, number = first.split()
            parts[name] = {"name": source, "version": number, "text": text}
    return document(target, parts, "DEPENDS_ON")
