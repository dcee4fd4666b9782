# SPDX-License-Identifier: Apache-2.0
"""Graph: append-only recording of launches, buffers, accesses and explicit edges.

Recording checks each launch against its kernel's metadata at once and copies every argument, so a mistake is reported
at the line that made it. It orders nothing and needs no device; `plan.py` does the ordering.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from .accesses import Accesses, AccessRows
from .callsite import callsite
from .encoders import family_for
from .errors import RecordError, UnsupportedKernel
from .instructions import check_instructions
from .kernarg import Slot
from .kernel import Kernel
from .launch import Launch, Packer, Size, Touch, Triple, bad, check_counts, check_dynamic_lds, geometry
from .ordering import UnorderedPair, unordered_pairs
from .ranges import KINDS, MAX_BYTES, MAX_GRAPH_BYTES, ROLES, Access, Buffer, Kind, Role, View, as_view

if TYPE_CHECKING:
    from .lanes import Queues
    from .plan import Plan

Order = Literal["record", "explicit"]
_owners = itertools.count(1)


class Graph:
    """Records launches of kernels of one target.

    `order="record"` (default): conflicting accesses keep the recorded order. `order="explicit"`: only `after=` orders,
    and conflicting launches that nothing orders are an error at compile. Raises RecordError for another order.
    """

    def __init__(self, order: Order = "record") -> None:
        if order not in ("record", "explicit"):
            raise bad("RL0111", callsite(), "Graph(order=)", order, "'record' or 'explicit'", "choose one of them")
        self.order: Order = order
        self.buffers: list[Buffer] = []
        self._rows = AccessRows()
        self.launches: list[Launch] = []
        self.slots: dict[str, Slot] = {}
        self._owner = next(_owners)
        self._names: set[str] = set()
        self._bytes = 0  # of all memories; an alias adds none
        self._sizes: dict[tuple[object, ...], tuple[Triple, Triple, Kernel]] = {}

    def __repr__(self) -> str:
        return f"<Graph order={self.order} buffers={len(self.buffers)} launches={len(self.launches)}>"

    def buffer(
        self,
        name: str,
        nbytes: int,
        *,
        kind: Kind = "device",
        role: Role = "internal",
        alias_of: Buffer | View | None = None,
    ) -> Buffer:
        """Name `nbytes` bytes of memory.

        kind: device (coarse-grained device), host (coarse-grained host), fine (fine-grained host), uncached.
        role: internal (the replay allocates it; its first content is undefined), in (the host writes it, launches only
        read it), out, inout (bound at instantiate; the host may touch it).
        alias_of: another name for memory of a buffer, from the slice's start; of that buffer's kind, never bound on
        its own.

        Raises RecordError for a name that is empty or taken, a size outside 1..2**48 bytes or that takes the graph
        past 2**62, an unknown kind or role, and an alias that does not fit its memory or has a role or a kind of its
        own.
        """
        site = callsite()
        self._check_buffer(site, name, nbytes, kind, role, alias_of)
        index, root, root_offset = len(self.buffers), len(self.buffers), 0
        if alias_of is not None:
            view = as_view(alias_of)
            root, root_offset = view.buffer.root, view.buffer.root_offset + view.start
            kind = view.buffer.kind  # what caches hold is decided by the memory, not by the name
        made = Buffer(name, operator.index(nbytes), kind, role, index, self._owner, root, root_offset)
        self.buffers.append(made)
        self._names.add(name)
        self._bytes += made.nbytes if alias_of is None else 0
        return made

    def launch(
        self,
        kernel: Kernel,
        *,
        grid: Size | Access | None = None,
        global_size: Size | None = None,
        block: Size,
        args: Sequence[Any] = (),
        after: Launch | Sequence[Launch] = (),
        accesses: Sequence[Access] = (),
        dynamic_lds: int = 0,
        label: str | None = None,
    ) -> Launch:
        """Record one launch and return it, for use in `after=`.

        `grid` counts workgroups, `global_size` work-items; exactly one is given. `grid=rl.read(counts[0:12])` takes
        three dwords from memory when the launch starts: workgroups in x, y and z, within the device's limits. `block`
        is in work-items. `args` follow the kernel's explicit arguments. `accesses` declares memory that no pointer
        argument carries. `after=` orders two launches and makes nothing visible. `dynamic_lds` is in bytes, beside the
        kernel's static LDS. `label` names the launch in messages and `explain()`; the kernel's name by default.

        A Python int is packed as an integer, a float as IEEE of the argument's size: the code object does not record
        which the kernel expects. Write 2.0 or `rl.f32(2)` for a float, never 2. What a launch declares is believed:
        bytes that it does not declare have no fences.

        Raises RecordError for a mistake, UnsupportedKernel for a kernel that needs what a dispatch does not supply
        or has instructions that no fence orders (its code is looked at once, at its first launch), EncodeError for a
        size beyond a limit, UnsupportedTarget for a kernel of a target that cannot be encoded, CodeObjectError for code
        that is not whole, radiowave's ToolchainError for a disassembler that fails. A launch that is refused leaves
        nothing behind.
        """
        site = callsite()
        name = label or str(getattr(kernel, "name", "?"))
        where = f"{site} launch #{len(self.launches)} {name!r}"
        counts, known = (grid, 1) if isinstance(grid, Access) else (None, grid)
        blocks, sizes = self._checked(kernel, known, global_size, block, dynamic_lds, where)
        packed = Packer(kernel, where, self.slots, self._adopt)
        packed.hidden(sizes, blocks, dynamic_lds)
        indirect = None
        if counts is not None:
            check_counts(counts, where)
            indirect, sizes = packed.indirect(counts, _past_l2(kernel)), (0, 0, 0)
        packed.explicit(args)
        packed.extra(accesses)
        self._check_roles(packed.touches, where)
        _check_declared(kernel, packed.touches, where)
        made = Launch(
            index=len(self.launches),
            label=name,
            kernel=kernel,
            global_size=sizes,
            block=blocks,
            dynamic_lds=dynamic_lds,
            kernarg=bytes(packed.image),
            pointers=tuple(packed.pointers),
            slots=tuple(packed.slot_args),
            touches=tuple(packed.touches),
            after=self._after(after, where),
            site=site,
            indirect=indirect,
        )
        self.slots.update(packed.new_slots)  # last: a launch that is refused leaves nothing behind
        self.launches.append(made)
        self._rows.add(made, self.buffers)
        return made

    def while_(self, *_: object, **__: object) -> NoReturn:
        """Refuse a loop or conditional node: which launches a replay runs is fixed when the plan is made.

        Raises RecordError that says what to do instead.
        """
        raise RecordError(
            "RL0142",
            where=f"{callsite()} graph.while_",
            seen="a node whose body runs as often as memory says",
            allowed="launches; a replay runs each once, whatever their results, and no packet we emit can skip one",
            do="replay a graph of one iteration in a host loop that reads the condition, or record a fixed number of "
            "iterations whose kernels do nothing once it is met",
        )

    def accesses(self) -> Accesses:
        """Every access recorded so far, as columns."""
        return Accesses.of(self._rows, self.buffers)

    def lint(self) -> tuple[UnorderedPair, ...]:
        """Conflicting launches that no chain of `after=` orders, largest overlap first: what an explicit graph must
        not have. Raises nothing, and gives the same for either order. Of very many accesses to the same bytes (beyond
        two million pairs) only neighbouring ones are listed.
        """
        return unordered_pairs(self.accesses(), self.launches, self.buffers)

    def compile(
        self,
        *,
        boundary: str = "host",
        schedule: str = "levels",
        fences: str = "minimal",
        gfx10_wait: str = "fence",
        elide: bool = True,
        queues: Queues = 1,
        phased: bool = False,
        form: str = "pm4",
        profile: bool = False,
    ) -> Plan:
        """Plan, derive the fences, lower to words. Options as in `Plan.of` and `lower`. Returns the Plan.

        Raises RedlineError as `Plan.of` and `lower` do.
        """
        from .forms import lower
        from .plan import Plan

        plan = Plan.of(self, boundary=boundary, schedule=schedule, fences=fences)
        # Lowered now: what cannot be encoded is reported here, and `plan.program` is the one that was asked for.
        options = {"gfx10_wait": gfx10_wait, "elide": elide, "queues": queues, "phased": phased, "form": form}
        plan.__dict__["program"] = lower(plan, plan.fences, **options, profile=profile)  # type: ignore[arg-type]
        return plan

    # -- checks --

    def _check_buffer(
        self, site: str, name: str, nbytes: int, kind: str, role: str, alias_of: Buffer | View | None
    ) -> None:
        where = f"{site} buffer {name!r}"
        if not isinstance(name, str) or not name or name in self._names:
            allowed = "a non-empty string that no other buffer of the graph has"
            raise bad("RL0112", where, "name", repr(name), allowed, "choose another name")
        if isinstance(nbytes, bool) or not hasattr(nbytes, "__index__") or not 0 < nbytes <= MAX_BYTES:
            raise bad(
                "RL0113",
                where,
                "size",
                f"{nbytes!r} bytes",
                f"an int in 1..{MAX_BYTES}",
                "give its size in bytes",
            )
        if alias_of is None and self._bytes + operator.index(nbytes) > MAX_GRAPH_BYTES:
            seen, allowed = f"{nbytes} bytes behind {self._bytes}", f"{MAX_GRAPH_BYTES} in all buffers of a graph"
            raise bad("RL0113", where, "size", seen, allowed, "give sizes that memory can have")
        if kind not in KINDS or role not in ROLES:
            allowed = f"kind of {KINDS}, role of {ROLES}"
            raise bad("RL0114", where, "kind or role", f"{kind!r}, {role!r}", allowed, "choose from these")
        if alias_of is not None:
            self._check_alias(where, nbytes, kind, role, alias_of)

    def _check_alias(self, where: str, nbytes: int, kind: str, role: str, alias_of: Buffer | View) -> None:
        view = as_view(alias_of)
        if view.buffer.owner != self._owner or nbytes > view.nbytes:
            seen, allowed = f"{nbytes} bytes in {view}", f"a buffer of this graph with at least {nbytes} bytes"
            raise bad("RL0115", where, "alias_of", seen, allowed, "alias a buffer, or a slice of one, that holds it")
        if role != "internal":
            allowed = "internal: an alias is memory of another buffer, which has the role and the binding"
            raise bad("RL0133", where, "role", role, allowed, f"give {view.buffer.name!r} the role")
        if kind not in ("device", view.buffer.kind):  # "device" is also what is said by leaving it out
            allowed = f"{view.buffer.kind}: an alias is memory of another buffer, which has the kind"
            raise bad("RL0133", where, "kind", kind, allowed, f"give {view.buffer.name!r} the kind, or leave it out")

    def _check_kernel(self, kernel: Kernel, where: str) -> None:
        if not isinstance(kernel, Kernel):
            allowed = 'a Kernel, as in rl.load("file.hsaco")["name"]'
            raise bad("RL0116", where, "kernel", type(kernel).__name__, allowed, "load a code object first")
        kernel.check_arguments(where)
        check_instructions(kernel, where)

    def _check_target(self, kernel: Kernel, where: str) -> None:
        target = self.launches[0].kernel.target if self.launches else kernel.target
        if kernel.target != target:
            raise bad(
                "RL0117",
                where,
                "target",
                kernel.target,
                f"{target}, as the graph's first launch",
                "use one graph per target",
            )

    def _check_roles(self, touches: Sequence[Touch], where: str) -> None:
        """Launches do not write what the host said only it writes."""
        for touch in touches:
            memory = self.buffers[self.buffers[touch.buffer].root]
            if touch.writes and memory.role == "in":
                seen = f"a write of {memory.name!r}, whose role is in"
                raise bad("RL0137", where, "access", seen, "reads of it", "give the buffer the role inout")

    def _checked(
        self, kernel: Kernel, grid: Size | None, global_size: Size | None, block: Size, dynamic_lds: int, where: str
    ) -> tuple[Triple, Triple]:
        """(block, global size) of a launch whose kernel and sizes are sound; whatever passed once passes again."""
        asked = grid, global_size, block, dynamic_lds
        # Only plain ints: True and 1.0 equal 1 and are refused, a list can change.
        plain = all(item is None or type(item) is int for item in asked)
        key = (id(kernel), *asked) if plain else ()
        if key in self._sizes:
            self._check_target(kernel, where)  # what passed may be a launch that was then refused
            return self._sizes[key][:2]
        self._check_kernel(kernel, where)
        self._check_target(kernel, where)
        blocks, sizes = geometry(kernel, grid, global_size, block, where)
        check_dynamic_lds(dynamic_lds, where)
        # Limits and fields are the encoder's knowledge: ask it now, so that the error names this line.
        family_for(kernel.target).dispatch_operation(kernel.words(where, dynamic_lds), sizes, blocks)
        if plain:
            self._sizes[key] = blocks, sizes, kernel  # the kernel is kept alive, so that its id stays its own
        return blocks, sizes

    def _after(self, after: Launch | Sequence[Launch], where: str) -> tuple[int, ...]:
        items: list[Launch] = [after] if isinstance(after, Launch) else [*_listed(after)]
        for item in items:
            known = isinstance(item, Launch) and item.index < len(self.launches) and self.launches[item.index] is item
            if not known:
                raise bad(
                    "RL0118",
                    where,
                    "after",
                    repr(item),
                    "launches of this graph",
                    "pass what graph.launch returned",
                )
        return tuple(sorted({item.index for item in items}))

    def _adopt(self, buffer: Buffer, where: str) -> None:
        if buffer.owner != self._owner:
            raise bad(
                "RL0119",
                where,
                "buffer",
                repr(buffer.name),
                "buffers of this graph",
                "make it with this graph's buffer()",
            )


def _past_l2(kernel: Kernel) -> tuple[str, ...]:
    """Kinds of memory that GL2 may hold and the command processor reads without it."""
    family = family_for(kernel.target)
    return family.l2_kinds if family.processor_reads_past_l2 else ()


def _check_declared(kernel: Kernel, touches: Sequence[Touch], where: str) -> None:
    """What is reached past the arguments has no fences unless the launch says what it is."""
    certificate = kernel.certificate
    if certificate is not None and certificate.undeclared and all(touch.argument is not None for touch in touches):
        raise UnsupportedKernel(
            "RL0410",
            where=where,
            seen="a kernel that reaches memory past its pointer arguments: a module's variable, or a pointer in memory",
            allowed="launches that declare it with accesses=",
            do="name the memory as a buffer and pass accesses=[rl.read(...)], rl.write or rl.update",
        )


def _listed(after: Any) -> list[Any]:
    """A list or tuple as it is; anything else as one item, to be named in the error."""
    return list(after) if isinstance(after, list | tuple) else [after]
