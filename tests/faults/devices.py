"""Mistakes in the bytes, the work and the seconds of many devices."""

from faults.fault import faults

FAULTS = faults(r"""
distributed/traffic | numpy
    an all-reduce in one phase | return ⟦2 * →⟧_share_of_others(size, world)
    a rank sends to itself | return size * ⟦(world - 1)→world⟧ / world
    the whole array at each step | return size * (world - 1)⟦ / world→⟧
    keys travel alone | return ⟦2 * →⟧(world - 1) * block
    once more than needed | return 2 * ⟦(world - 1)→world⟧ * block
    gradients do not come home | (4 * (world - 1)⟦ + 2 * (world > 1)→⟧)
    keys and values come home too | (4 * ⟦(world - 1) + 2→world⟧ * (world > 1))
    gradients stay | (⟦4→2⟧ * (world - 1) + 2 * (world > 1))
    a single rank sends itself gradients | 2⟦ * (world > 1)→⟧
    one all-reduce per block | return ⟦2 * →⟧math.prod(sizes.values())
    parts without their maximum | rows * (⟦2→1⟧ + width)
    stages counted from the other side |
        sum⟦(kinds[: 3 - stage]), sum(kinds[3 - stage :])→(kinds[:stage]), sum(kinds[stage:])⟧
    stage 1 divides the weights | numbers.nonnegative⟦(weights=weights),\n
                numbers.nonnegative(gradients=gradients),\n
                numbers.nonnegative(optimizer=optimizer)→(optimizer=optimizer),\n
                numbers.nonnegative(gradients=gradients),\n
                numbers.nonnegative(weights=weights)⟧,
    nothing is divided | (whole + divided⟦ / world→⟧)
    stage 3 gathers once | passes = ⟦3→2⟧ if
    stage 2 gathers twice | ⟦== 3→>= 2⟧ else 2
    rows that are left over are dropped | ⟦-(-rows // world)→rows // world⟧ * world
    rows are not filled up | ⟦-(-rows // world) * world→rows⟧
    diagonal blocks left out | ⟦2 * world / (world + 1)→(2 * world - 1) / world⟧
    a zigzag as uneven as the rest | ⟦1.0 + 0 * world→2 * world / (world + 1)⟧ if
    the bubble over the work | (p - 1) / ⟦(m + p - 1)→m⟧
    one more stage waits | ⟦(p - 1) / (m + p - 1)→p / (m + p)⟧
distributed/communication_time | numpy
    latency of one message | return ⟦messages * →⟧link.latency +
    latency multiplied by bytes | return messages * link.latency ⟦→* size ⟧+
    bandwidth multiplied | link.latency + size ⟦/→*⟧ link.bandwidth
    the way back left out | OPERATIONS = ⟦6→2⟧
    gradients travel once round | ⟦2 * →⟧(world - 1) * piece, link
    half the messages | send = seconds(⟦2 * (world - 1)→world - 1⟧,
    whole gradients as messages | numbers.positive(itemsize=itemsize)⟦ / world→⟧\n
    the least batch for one product | / ⟦(BACKWARD * OPERATIONS)→2⟧
    gradients hide on the way forward | / ⟦(BACKWARD * OPERATIONS)→OPERATIONS⟧
    the way forward hides them too |
        ⟦(forward + _together(backward, send, overlap))→_together(compute, send, overlap)⟧
    the way back takes half | BACKWARD = ⟦2 / 3→1 / 2⟧
    one product of attention | compute = ⟦4→2⟧ * tokens**2
    keys travel alone, seconds | 1, ⟦2 * →⟧tokens * width
    one send too many | (⟦(world - 1) * _together(compute, send, overlap) + compute
        →world * _together(compute, send, overlap)⟧)
    the last block computed twice | (world - 1) * _together(compute, send, overlap) + ⟦→2 * ⟧compute
    a block of half the length | return ⟦2 * →⟧half\n
    the block's latency left out |
        ⟦link.latency * flops / (4 * float(width or 1))→0 * float(width or 1)⟧
    the block's latency fourfold | link.latency * flops / (⟦4 * →⟧float
    the shorter of both times | np.⟦maximum→minimum⟧(compute, send)
    always together | return ⟦compute + send→np.maximum(compute, send)⟧
distributed/layout | numpy
    every expert counted as active | (1 - ⟦self.chosen / self.experts→1⟧)
    keys of all heads of queries | self.width * ⟦(self.key_heads or self.heads)→self.heads⟧
distributed/plan | numpy
    scores once | return ⟦12→4⟧ * model.layers
    one MLP kept of several | (15.0 + 19⟦ * model.chosen→⟧)
    scores kept that are made anew | if kind ⟦== "none→!= "all⟧" else 0
    all micro-batches kept | = ⟦min(layout.micro_batches, layout.stages)→layout.micro_batches⟧
    activations whole on every head's device | sequence / ⟦(layout.heads * layout.ring)→layout.ring⟧
    experts divided by all copies | same⟦ // layout.experts→⟧
    no sums on the way back | sums = ⟦(forward + 1)→forward⟧ * blocks
    a bubble of the first micro-batches | waits⟦ / (1 - waits)→⟧
    gradients of stage 2 once | 2: (1, ⟦m→1⟧), 3: (2, m)
    weights gathered once | 3: (1, ⟦m→1⟧)}[layout.zero]
    every card for one rank | cards = ⟦max(1, cluster.per_machine // within)→cluster.per_machine⟧
    what is made anew counts as useful |
        useful = ⟦operations(model) * batch→seconds['compute'] * cluster.flops * cluster.devices⟧
torch/counting | torch
    the share in place of the whole |
        ⟦max(map(_bytes, (*args, result)))→min(filter(None, map(_bytes, args)), default=0)⟧
    DTensors hide what they call | ⟦return NotImplemented→pass⟧
    the group stays | ⟦distributed.destroy_process_group()→pass⟧
    numbers in place of shapes | if ⟦→not ⟧self.shapes_only:
    bytes are numbers | tensor.numel()⟦ * tensor.element_size()→⟧
_validation/arrays | torch |
        project/test_package.py::test_known_true_does_not_look_into_a_fake_tensor
    a fake tensor is asked | tensor.is_meta or⟦ _is_fake(tensor) or→⟧
""")
