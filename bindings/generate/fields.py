# SPDX-License-Identifier: Apache-2.0
"""What the types of the fields of options do not say."""
# Fields that say how long the array in another field is.
LENGTHS = {"cores": "ncores", "size": "n", "sizes": "nsizes"}
