# SPDX-License-Identifier: Apache-2.0
"""Writes programs that compare the description with what compilers say: the size of every struct,
the offset of every field, the value of every constant.
"""


def c_program(description):
    """Compiles only if everything is right."""
    out = ["#include <catena/catena.h>", "#include <catena/model.h>", "#include <stddef.h>", ""]
    for constant in description["constants"]:
        out.append(equal(constant["name"], constant["value"]))
    for enum in description["enums"]:
        out += [equal(value["name"], value["value"]) for value in enum["values"]]
    for struct in description["structs"]:
        name = struct["name"]
        out.append(equal(f"sizeof({name})", struct["size"]))
        for field in struct["fields"]:
            out.append(equal(f"offsetof({name}, {field['name']})", field["offset"]))
            if "length" in field:
                size = f"sizeof((({name} *)0)->{field['name']})"
                out.append(equal(f"{size} / sizeof({field['type']})", field["length"]))
    return "\n".join([*out, "int main(void) { return 0; }", ""])


def equal(expression, value):
    return f'_Static_assert({expression} == {value}, "{expression} is not {value}");'


def fortran_program(description):
    """Stops with a message at the first difference. Every struct has a subroutine of its own."""
    names = [struct["name"] for struct in description["structs"]]
    out = ["program layout", "    use catena_c", "    implicit none",
           *(f"    call check_{name}()" for name in names), "contains", CHECK]
    for struct in description["structs"]:
        name = struct["name"]
        out += [f"    subroutine check_{name}()", f"        type({name}), target :: x",
                f"        call same('{name}', int(c_sizeof(x)), {struct['size']})"]
        for field in struct["fields"]:
            out += [f"        call same('{name}%{field['name']}', &",
                    f"            distance(c_loc(x), c_loc(x%{field['name']})), "
                    f"{field['offset']})"]
        out.append("    end subroutine")
    return "\n".join([*out, "end program", ""])


CHECK = """    subroutine same(name, found, wanted)
        character(*), intent(in) :: name
        integer, intent(in) :: found, wanted
        if (found == wanted) return
        print '(2a,2(a,i0))', name, ': ', 'found ', found, ', expected ', wanted
        error stop
    end subroutine
    function distance(from, to) result(bytes)
        type(c_ptr), intent(in) :: from, to
        integer :: bytes
        bytes = int(transfer(to, 0_c_intptr_t) - transfer(from, 0_c_intptr_t))
    end function"""
