# SPDX-License-Identifier: Apache-2.0
"""The rows that operations are made of, as LLVM IR text.

Data only; `ir_operations` reads it and says what a row promises. A row starts with `name: result = operands`.
Lines `$x in ...` list the choices of an immediate; the others are IR with `$r` for the result, `$a` `$b` `$c`
for the operands and `$r.x` for temporaries. Capital words are filled in per type. `%zero` (i32) and
`%zero64` (i64) are 0 in memory, which no optimiser knows: a value xored with them is opaque.
"""

# Over one integer type T of W bits; MASK is W - 1.
INTEGER = """
add: T = T T
    $r = add T $a, $b
sub: T = T T
    $r = sub T $a, $b
mul: T = T T
    $r = mul T $a, $b
and: T = T T
    $r = and T $a, $b
xor: T = T T
    $r = xor T $a, $b
not: T = T
    $r = xor T $a, -1
neg: T = T
    $r = sub T 0, $a
shl: T = T T
    $r.n = and T $b, MASK
    $r = shl T $a, $r.n
lshr: T = T T
    $r.n = and T $b, MASK
    $r = lshr T $a, $r.n
ashr: T = T T
    $r.n = and T $b, MASK
    $r = ashr T $a, $r.n
smin: T = T T
    $r = call T @llvm.smin.S(T $a, T $b)
smax: T = T T
    $r = call T @llvm.smax.S(T $a, T $b)
umin: T = T T
    $r = call T @llvm.umin.S(T $a, T $b)
umax: T = T T
    $r = call T @llvm.umax.S(T $a, T $b)
min3: T = T T T
    $r.m = call T @llvm.smin.S(T $a, T $b)
    $r = call T @llvm.smin.S(T $r.m, T $c)
umax3: T = T T T
    $r.m = call T @llvm.umax.S(T $a, T $b)
    $r = call T @llvm.umax.S(T $r.m, T $c)
max3: T = T T T
    $r.m = call T @llvm.smax.S(T $a, T $b)
    $r = call T @llvm.smax.S(T $r.m, T $c)
umaxmin: T = T T T
    $r.m = call T @llvm.umax.S(T $a, T $b)
    $r = call T @llvm.umin.S(T $r.m, T $c)
minmax: T = T T T
    $r.m = call T @llvm.smin.S(T $a, T $b)
    $r = call T @llvm.smax.S(T $r.m, T $c)
uminmax: T = T T T
    $r.m = call T @llvm.umin.S(T $a, T $b)
    $r = call T @llvm.umax.S(T $r.m, T $c)
andn: T = T T
    $r.n = xor T $b, -1
    $r = and T $a, $r.n
xnor: T = T T
    $r.n = xor T $a, $b
    $r = xor T $r.n, -1
clearbit: T = T
    $k in -2 -3 -257 -4097 -16385
    $r = and T $a, $k
bittest: i1 = T
    $p in eq ne
    $n in 0 3 8 13
    $r.s = lshr T $a, $n
    $r.b = and T $r.s, 1
    $r = icmp $p T $r.b, 0
absdiff: T = T T T
    $r.h = call T @llvm.umax.S(T $a, T $b)
    $r.l = call T @llvm.umin.S(T $a, T $b)
    $r.d = sub T $r.h, $r.l
    $r = add T $r.d, $c
maxmin: T = T T T
    $r.m = call T @llvm.smax.S(T $a, T $b)
    $r = call T @llvm.smin.S(T $r.m, T $c)
med3: T = T
    $r.m = call T @llvm.smax.S(T $a, T -20)
    $r = call T @llvm.smin.S(T $r.m, T 1000)
umed3: T = T
    $r.m = call T @llvm.umax.S(T $a, T 12)
    $r = call T @llvm.umin.S(T $r.m, T 1000)
abs: T = T
    $r = call T @llvm.abs.S(T $a, i1 false)
ctpop: T = T
    $r = call T @llvm.ctpop.S(T $a)
ctlz: T = T
    $r = call T @llvm.ctlz.S(T $a, i1 false)
cttz: T = T
    $r = call T @llvm.cttz.S(T $a, i1 false)
bswap: T = T
    $r = call T @llvm.bswap.S(T $a)
bitreverse: T = T
    $r = call T @llvm.bitreverse.S(T $a)
fshl: T = T T T
    $r = call T @llvm.fshl.S(T $a, T $b, T $c)
fshr: T = T T T
    $r = call T @llvm.fshr.S(T $a, T $b, T $c)
uadd.sat: T = T T
    $r = call T @llvm.uadd.sat.S(T $a, T $b)
sadd.sat: T = T T
    $r = call T @llvm.sadd.sat.S(T $a, T $b)
usub.sat: T = T T
    $r = call T @llvm.usub.sat.S(T $a, T $b)
ssub.sat: T = T T
    $r = call T @llvm.ssub.sat.S(T $a, T $b)
ushl.sat: T = T T
    $r.n = and T $b, MASK
    $r = call T @llvm.ushl.sat.S(T $a, T $r.n)
add3: T = T T T
    $r.s = add T $a, $b
    $r = add T $r.s, $c
xor3: T = T T T
    $r.s = xor T $a, $b
    $r = xor T $r.s, $c
xad: T = T T T
    $r.s = xor T $a, $b
    $r = add T $r.s, $c
mad: T = T T T
    $r.p = mul T $a, $b
    $r = add T $r.p, $c
bcnt: T = T T
    $r.n = call T @llvm.ctpop.S(T $a)
    $r = add T $r.n, $b
select: T = i1 T T
    $r = select i1 $a, T $b, T $c
icmp: i1 = T T
    $p in eq ne ugt uge ult ule sgt sge slt sle
    $r = icmp $p T $a, $b
uaddo: T = T T
    $r.p = call {T, i1} @llvm.uadd.with.overflow.S(T $a, T $b)
    $r.v = extractvalue {T, i1} $r.p, 0
    $r.o = extractvalue {T, i1} $r.p, 1
    $r.z = zext i1 $r.o to T
    $r = add T $r.v, $r.z
usubo: T = T T
    $r.p = call {T, i1} @llvm.usub.with.overflow.S(T $a, T $b)
    $r.v = extractvalue {T, i1} $r.p, 0
    $r.o = extractvalue {T, i1} $r.p, 1
    $r.z = zext i1 $r.o to T
    $r = sub T $r.v, $r.z
saddo: i1 = T T
    $r.p = call {T, i1} @llvm.sadd.with.overflow.S(T $a, T $b)
    $r = extractvalue {T, i1} $r.p, 1
ssubo: i1 = T T
    $r.p = call {T, i1} @llvm.ssub.with.overflow.S(T $a, T $b)
    $r = extractvalue {T, i1} $r.p, 1
"""

# Over i16 and i32: what ends in a bitwise or.
INTEGER_OR = """
or: T = T T
    $r = or T $a, $b
or3: T = T T T
    $r.s = or T $a, $b
    $r = or T $r.s, $c
and_or: T = T T T
    $r.s = and T $a, $b
    $r = or T $r.s, $c
bfi: T = T T T
    $r.x = and T $a, $b
    $r.n = xor T $a, -1
    $r.y = and T $r.n, $c
    $r = or T $r.x, $r.y
orn: T = T T
    $r.n = xor T $b, -1
    $r = or T $a, $r.n
nand: T = T T
    $r.n = and T $a, $b
    $r = xor T $r.n, -1
nor: T = T T
    $r.n = or T $a, $b
    $r = xor T $r.n, -1
setbit: T = T
    $k in 1 2 256 4096 16384
    $r = or T $a, $k
"""

# The same over i64. The operands are opaque: where LLVM 22 knows the high half of one to be all ones, it takes the
# high half of the other for the result.
LONG_OR = """
or: T = T T
    $r.za = xor T $a, %zero64
    $r.zb = xor T $b, %zero64
    $r = or T $r.za, $r.zb
or3: T = T T T
    $r.za = xor T $a, %zero64
    $r.zb = xor T $b, %zero64
    $r.zc = xor T $c, %zero64
    $r.s = or T $r.za, $r.zb
    $r = or T $r.s, $r.zc
and_or: T = T T T
    $r.za = xor T $a, %zero64
    $r.zb = xor T $b, %zero64
    $r.zc = xor T $c, %zero64
    $r.s = and T $r.za, $r.zb
    $r = or T $r.s, $r.zc
bfi: T = T T T
    $r.za = xor T $a, %zero64
    $r.zb = xor T $b, %zero64
    $r.zc = xor T $c, %zero64
    $r.x = and T $r.za, $r.zb
    $r.n = xor T $r.za, -1
    $r.y = and T $r.n, $r.zc
    $r = or T $r.x, $r.y
orn: T = T T
    $r.za = xor T $a, %zero64
    $r.zb = xor T $b, %zero64
    $r.n = xor T $r.zb, -1
    $r = or T $r.za, $r.n
nand: T = T T
    $r.za = xor T $a, %zero64
    $r.zb = xor T $b, %zero64
    $r.n = and T $r.za, $r.zb
    $r = xor T $r.n, -1
nor: T = T T
    $r.za = xor T $a, %zero64
    $r.zb = xor T $b, %zero64
    $r.n = or T $r.za, $r.zb
    $r = xor T $r.n, -1
setbit: T = T
    $k in 1 2 256 4096 16384
    $r.za = xor T $a, %zero64
    $r = or T $r.za, $k
"""

# Over one integer type T, tens of instructions each. Division by zero and MIN / -1 divide by one instead. So does
# every negative power of two by -1: where LLVM 22 knows that an operand has few bits, say 8, it divides in these
# and takes -128 / -1 for -128.
DIVISION = """
udiv: T = T T
    $r.z = icmp eq T $b, 0
    $r.d = select i1 $r.z, T 1, T $b
    $r = udiv T $a, $r.d
urem: T = T T
    $r.z = icmp eq T $b, 0
    $r.d = select i1 $r.z, T 1, T $b
    $r = urem T $a, $r.d
sdiv: T = T T
    $r.z = icmp eq T $b, 0
    $r.m = icmp eq T $b, -1
    $r.n = sub T 0, $a
    $r.w = and T $a, $r.n
    $r.l = icmp eq T $r.w, $r.n
    $r.v = and i1 $r.m, $r.l
    $r.g = or i1 $r.z, $r.v
    $r.d = select i1 $r.g, T 1, T $b
    $r = sdiv T $a, $r.d
srem: T = T T
    $r.z = icmp eq T $b, 0
    $r.m = icmp eq T $b, -1
    $r.n = sub T 0, $a
    $r.w = and T $a, $r.n
    $r.l = icmp eq T $r.w, $r.n
    $r.v = and i1 $r.m, $r.l
    $r.g = or i1 $r.z, $r.v
    $r.d = select i1 $r.g, T 1, T $b
    $r = srem T $a, $r.d
smulo: i1 = T T
    $r.p = call {T, i1} @llvm.smul.with.overflow.S(T $a, T $b)
    $r = extractvalue {T, i1} $r.p, 1
umulo: i1 = T T
    $r.p = call {T, i1} @llvm.umul.with.overflow.S(T $a, T $b)
    $r = extractvalue {T, i1} $r.p, 1
umulh: T = T T
    $r.a = zext T $a to WIDE
    $r.b = zext T $b to WIDE
    $r.p = mul WIDE $r.a, $r.b
    $r.h = lshr WIDE $r.p, W
    $r = trunc WIDE $r.h to T
smulh: T = T T
    $r.a = sext T $a to WIDE
    $r.b = sext T $b to WIDE
    $r.p = mul WIDE $r.a, $r.b
    $r.h = ashr WIDE $r.p, W
    $r = trunc WIDE $r.h to T
udivk: T = T
    $k in 3 5 7 10 127 641 1000 12345
    $r = udiv T $a, $k
sremk: T = T
    $k in 3 5 7 10 -7 64 641 -1000 12345
    $r = srem T $a, $k
"""

# Over one float type T; I is the integer of the same width. minnum and maxnum leave two things open, a
# signalling NaN and the order of -0 and +0: adding +0 to what is no NaN settles both. minimumnum defines both,
# but LLVM 22 fuses nested ones into v_min3, v_med3 and their kin, which gfx10 and gfx11 give another rule for
# signalling NaNs: its operands are made quiet first. fract has finite operands: v_fract of infinity is NaN, which
# the minnum of this pattern would drop.
FLOAT = """
fadd: T = T T
    $r = fadd T $a, $b
fsub: T = T T
    $r = fsub T $a, $b
fmul: T = T T
    $r = fmul T $a, $b
fma: T = T T T
    $r = call T @llvm.fma.S(T $a, T $b, T $c)
fnma: T = T T T
    $r.n = fneg T $a
    $r.k = fneg T $c
    $r = call T @llvm.fma.S(T $r.n, T $b, T $r.k)
fsubabs: T = T T
    $r.m = call T @llvm.fabs.S(T $b)
    $r = fsub T $a, $r.m
fneg: T = T
    $r = fneg T $a
fabs: T = T
    $r = call T @llvm.fabs.S(T $a)
floor: T = T
    $r = call T @llvm.floor.S(T $a)
ceil: T = T
    $r = call T @llvm.ceil.S(T $a)
trunc: T = T
    $r = call T @llvm.trunc.S(T $a)
rint: T = T
    $r = call T @llvm.rint.S(T $a)
roundeven: T = T
    $r = call T @llvm.roundeven.S(T $a)
round: T = T
    $r = call T @llvm.round.S(T $a)
canonicalize: T = T
    $r = call T @llvm.canonicalize.S(T $a)
minimumnum: T = T T
    $r.qa = call T @llvm.canonicalize.S(T $a)
    $r.qb = call T @llvm.canonicalize.S(T $b)
    $r = call T @llvm.minimumnum.S(T $r.qa, T $r.qb)
maximumnum: T = T T
    $r.qa = call T @llvm.canonicalize.S(T $a)
    $r.qb = call T @llvm.canonicalize.S(T $b)
    $r = call T @llvm.maximumnum.S(T $r.qa, T $r.qb)
minimum: T = T T
    $r = call T @llvm.minimum.S(T $a, T $b)
maximum: T = T T
    $r = call T @llvm.maximum.S(T $a, T $b)
minimum3: T = T T T
    $r.m = call T @llvm.minimum.S(T $a, T $b)
    $r = call T @llvm.minimum.S(T $r.m, T $c)
maximum3: T = T T T
    $r.m = call T @llvm.maximum.S(T $a, T $b)
    $r = call T @llvm.maximum.S(T $r.m, T $c)
maximumminimum: T = T T T
    $r.m = call T @llvm.maximum.S(T $a, T $b)
    $r = call T @llvm.minimum.S(T $r.m, T $c)
minimummaximum: T = T T T
    $r.m = call T @llvm.minimum.S(T $a, T $b)
    $r = call T @llvm.maximum.S(T $r.m, T $c)
max3f: T = T T T
    $r.qa = call T @llvm.canonicalize.S(T $a)
    $r.qb = call T @llvm.canonicalize.S(T $b)
    $r.qc = call T @llvm.canonicalize.S(T $c)
    $r.m = call T @llvm.maximumnum.S(T $r.qa, T $r.qb)
    $r = call T @llvm.maximumnum.S(T $r.m, T $r.qc)
minmaxf: T = T T T
    $r.qa = call T @llvm.canonicalize.S(T $a)
    $r.qb = call T @llvm.canonicalize.S(T $b)
    $r.qc = call T @llvm.canonicalize.S(T $c)
    $r.m = call T @llvm.minimumnum.S(T $r.qa, T $r.qb)
    $r = call T @llvm.maximumnum.S(T $r.m, T $r.qc)
minnum: T = T T
    $r.ao = fcmp ord T $a, ZERO
    $r.as = select i1 $r.ao, T $a, T ONE
    $r.u = fadd T $r.as, ZERO
    $r.bo = fcmp ord T $b, ZERO
    $r.bs = select i1 $r.bo, T $b, T ONE
    $r.v = fadd T $r.bs, ZERO
    $r = call T @llvm.minnum.S(T $r.u, T $r.v)
maxnum: T = T T
    $r.ao = fcmp ord T $a, ZERO
    $r.as = select i1 $r.ao, T $a, T ONE
    $r.u = fadd T $r.as, ZERO
    $r.bo = fcmp ord T $b, ZERO
    $r.bs = select i1 $r.bo, T $b, T ONE
    $r.v = fadd T $r.bs, ZERO
    $r = call T @llvm.maxnum.S(T $r.u, T $r.v)
clamp: T = T
    $r.qa = call T @llvm.canonicalize.S(T $a)
    $r.m = call T @llvm.maximumnum.S(T $r.qa, T ZERO)
    $r = call T @llvm.minimumnum.S(T $r.m, T ONE)
unclamp: T = T
    $r.qa = call T @llvm.canonicalize.S(T $a)
    $r.m = call T @llvm.minimumnum.S(T $r.qa, T ONE)
    $r = call T @llvm.maximumnum.S(T $r.m, T ZERO)
fmed3: T = T
    $r.qa = call T @llvm.canonicalize.S(T $a)
    $r.m = call T @llvm.maximumnum.S(T $r.qa, T ONE)
    $r = call T @llvm.minimumnum.S(T $r.m, T FOUR)
min3f: T = T T T
    $r.qa = call T @llvm.canonicalize.S(T $a)
    $r.qb = call T @llvm.canonicalize.S(T $b)
    $r.qc = call T @llvm.canonicalize.S(T $c)
    $r.m = call T @llvm.minimumnum.S(T $r.qa, T $r.qb)
    $r = call T @llvm.minimumnum.S(T $r.m, T $r.qc)
maxminf: T = T T T
    $r.qa = call T @llvm.canonicalize.S(T $a)
    $r.qb = call T @llvm.canonicalize.S(T $b)
    $r.qc = call T @llvm.canonicalize.S(T $c)
    $r.m = call T @llvm.maximumnum.S(T $r.qa, T $r.qb)
    $r = call T @llvm.minimumnum.S(T $r.m, T $r.qc)
fselect: T = i1 T T
    $r = select i1 $a, T $b, T $c
fselectneg: T = i1 T T
    $r.n = fneg T $b
    $r.m = call T @llvm.fabs.S(T $c)
    $r = select i1 $a, T $r.n, T $r.m
fmin.ordered: T = T T
    $p in olt ole ogt oge ult ule ugt uge
    $r.c = fcmp $p T $a, $b
    $r = select i1 $r.c, T $a, T $b
fcmp: i1 = T T
    $p in oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno
    $r = fcmp $p T $a, $b
fcmpneg: i1 = T T
    $p in oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno
    $r.n = fneg T $a
    $r.m = call T @llvm.fabs.S(T $b)
    $r = fcmp $p T $r.n, $r.m
class: i1 = T
    $m in 3 516 504 264 144 96 528 63 611 255 960 252
    $r = call i1 @llvm.is.fpclass.S(T $a, i32 $m)
mul2: T = T T
    $r.s = fadd T $a, $b
    $r = fmul T $r.s, FOUR
tobits: I = T
    $r.o = fcmp ord T $a, ZERO
    $r.s = select i1 $r.o, T $a, T ONE
    $r = bitcast T $r.s to I
frombits: T = I
    $r = bitcast I $a to T
ldexp: T = T i32
    $r.n = srem i32 $b, 70
    $r = call T @llvm.ldexp.S.i32(T $a, i32 $r.n)
ldexp.wide: T = T i32
    $r = call T @llvm.ldexp.S.i32(T $a, i32 $b)
frexp.mantissa: T = T
    $r.p = call {T, i32} @llvm.frexp.S.i32(T $a)
    $r = extractvalue {T, i32} $r.p, 0
frexp.exponent: i32 = T
    $r.m = call T @llvm.fabs.S(T $a)
    $r.f = fcmp olt T $r.m, INF
    $r.s = select i1 $r.f, T $a, T ONE
    $r.p = call {T, i32} @llvm.frexp.S.i32(T $r.s)
    $r = extractvalue {T, i32} $r.p, 1
uitofp i1: T = i1
    $r = uitofp i1 $a to T
fract: T = T
    $r.q = call T @llvm.canonicalize.S(T $a)
    $r.n = call T @llvm.maximumnum.S(T $r.q, T -60000.0)
    $r.x = call T @llvm.minimumnum.S(T $r.n, T 60000.0)
    $r.f = call T @llvm.floor.S(T $r.x)
    $r.d = fsub T $r.x, $r.f
    $r = call T @llvm.minnum.S(T $r.d, T BELOWONE)
"""

# Over float and double T. Not over half: for gfx11, LLVM 22 loses the load of a scalar half that a copysign with two
# variable operands uses in another basic block (it emits v_bfi_b32 with one register three times).
FLOAT_SIGN = """
copysign: T = T T
    $r.o = fcmp ord T $b, ZERO
    $r.s = select i1 $r.o, T $b, T ONE
    $r = call T @llvm.copysign.S(T $a, T $r.s)
"""

# Over one float type T, tens of instructions each.
FLOAT_DIVISION = """
fdiv: T = T T
    $r = fdiv T $a, $b
sqrt: T = T
    $r.m = call T @llvm.fabs.S(T $a)
    $r = call T @llvm.sqrt.S(T $r.m)
recip: T = T
    $r = fdiv T ONE, $a
"""

# Over an integer T and a float U.
CONVERSION = """
sitofp: U = T
    $r = sitofp T $a to U
uitofp: U = T
    $r = uitofp T $a to U
fptosi: T = U
    $r = call T @llvm.fptosi.sat.S.Z(U $a)
fptoui: T = U
    $r = call T @llvm.fptoui.sat.S.Z(U $a)
"""

# Over an integer T: from and to one bit a lane.
LANE_INTEGER = """
zext i1: T = i1
    $r = zext i1 $a to T
sext i1: T = i1
    $r = sext i1 $a to T
trunc i1: i1 = T
    $r = trunc T $a to i1
"""

# Over an integer T and a wider one U.
WIDTH = """
zext: U = T
    $r = zext T $a to U
sext: U = T
    $r = sext T $a to U
trunc: T = U
    $r = trunc U $a to T
"""

# Over a float T and a wider one U.
FLOAT_WIDTH = """
fpext: U = T
    $r = fpext T $a to U
"""

# Over a float T and a wider one U, but for float to half.
FLOAT_NARROWER = """
fptrunc: T = U
    $r = fptrunc U $a to T
"""

# Over a pair T of 16-bit numbers U.
PAIR = """
build: T = U U
    $r.l = insertelement T poison, U $a, i32 0
    $r = insertelement T $r.l, U $b, i32 1
low: U = T
    $r = extractelement T $a, i32 0
high: U = T
    $r = extractelement T $a, i32 1
swap: T = T T
    $i in 0 1 2 3
    $j in 0 1 2 3
    $r = shufflevector T $a, T $b, <2 x i32> <i32 $i, i32 $j>
frombits: T = i32
    $r = bitcast i32 $a to T
"""

# Over a pair T of i16.
PAIR_INTEGER = """
add: T = T T
    $r = add T $a, $b
sub: T = T T
    $r = sub T $a, $b
mul: T = T T
    $r = mul T $a, $b
mad: T = T T T
    $r.p = mul T $a, $b
    $r = add T $r.p, $c
and: T = T T
    $r = and T $a, $b
xor: T = T T
    $r = xor T $a, $b
shl: T = T T
    $r.n = and T $b, splat (i16 15)
    $r = shl T $a, $r.n
lshr: T = T T
    $r.n = and T $b, splat (i16 15)
    $r = lshr T $a, $r.n
ashr: T = T T
    $r.n = and T $b, splat (i16 15)
    $r = ashr T $a, $r.n
smin: T = T T
    $r = call T @llvm.smin.S(T $a, T $b)
smax: T = T T
    $r = call T @llvm.smax.S(T $a, T $b)
umin: T = T T
    $r = call T @llvm.umin.S(T $a, T $b)
umax: T = T T
    $r = call T @llvm.umax.S(T $a, T $b)
uadd.sat: T = T T
    $r = call T @llvm.uadd.sat.S(T $a, T $b)
ssub.sat: T = T T
    $r = call T @llvm.ssub.sat.S(T $a, T $b)
select: T = i1 T T
    $r = select i1 $a, T $b, T $c
addk: T = T
    $k in 1 -1 64 -16 1000
    $l in 0 1 -1 -32768 77
    $r = add T $a, <i16 $k, i16 $l>
"""

# Over a pair T of half.
PAIR_FLOAT = """
fadd: T = T T
    $r = fadd T $a, $b
fsub: T = T T
    $r = fsub T $a, $b
fmul: T = T T
    $r = fmul T $a, $b
fma: T = T T T
    $r = call T @llvm.fma.S(T $a, T $b, T $c)
fneg: T = T
    $r = fneg T $a
fabs: T = T
    $r = call T @llvm.fabs.S(T $a)
minimumnum: T = T T
    $r.qa = call T @llvm.canonicalize.S(T $a)
    $r.qb = call T @llvm.canonicalize.S(T $b)
    $r = call T @llvm.minimumnum.S(T $r.qa, T $r.qb)
maximumnum: T = T T
    $r.qa = call T @llvm.canonicalize.S(T $a)
    $r.qb = call T @llvm.canonicalize.S(T $b)
    $r = call T @llvm.maximumnum.S(T $r.qa, T $r.qb)
minimum: T = T T
    $r = call T @llvm.minimum.S(T $a, T $b)
maximum: T = T T
    $r = call T @llvm.maximum.S(T $a, T $b)
negmul: T = T T
    $r.x = shufflevector T $a, T poison, <2 x i32> <i32 1, i32 0>
    $r.n = fneg T $r.x
    $r = fmul T $r.n, $b
mulk: T = T
    $k in 1.0 -0.5 4.0 0xH3118 0xH0001
    $l in 1.0 2.0 -4.0 0xH3118 0xH7BFF
    $r = fmul T $a, <half $k, half $l>
select: T = i1 T T
    $r = select i1 $a, T $b, T $c
tobits: i32 = T
    $r.o = fcmp ord T $a, zeroinitializer
    $r.s = select <2 x i1> $r.o, T $a, T splat (half 1.0)
    $r = bitcast T $r.s to i32
"""

# Once each: lane masks, and idioms that a device may have one instruction for. A float is opaque where it becomes
# a half: LLVM 22 turns fptrunc(fmul) into v_fma_mixlo_f16 with +0 added, and a product of -0 into +0. The sum that a
# dot product adds to is opaque, and its result too: LLVM 22 drops the sign of a negated number in such a chain.
SINGLE = """
and i1: i1 = i1 i1
    $r = and i1 $a, $b
or i1: i1 = i1 i1
    $r = or i1 $a, $b
xor i1: i1 = i1 i1
    $r = xor i1 $a, $b
andn i1: i1 = i1 i1
    $r.n = xor i1 $b, true
    $r = and i1 $a, $r.n
select i1: i1 = i1 i1 i1
    $r = select i1 $a, i1 $b, i1 $c
fma_mix: float = half half float
    $r.x = fpext half $a to float
    $r.n = fneg half $b
    $r.y = fpext half $r.n to float
    $r = call float @llvm.fma.f32(float $r.x, float $r.y, float $c)
fma_mixlo: half = half float half
    $r.x = fpext half $a to float
    $r.y = fpext half $c to float
    $r.f = call float @llvm.fma.f32(float $r.x, float $b, float $r.y)
    $r = fptrunc float $r.f to half
fptrunc half float: half = float
    $r.i = bitcast float $a to i32
    $r.j = xor i32 $r.i, %zero
    $r.f = bitcast i32 $r.j to float
    $r = fptrunc float $r.f to half
pack trunc: v2f16 = float float
    $r.i = bitcast float $a to i32
    $r.j = xor i32 $r.i, %zero
    $r.f = bitcast i32 $r.j to float
    $r.k = bitcast float $b to i32
    $r.m = xor i32 $r.k, %zero
    $r.g = bitcast i32 $r.m to float
    $r.x = fptrunc float $r.f to half
    $r.y = fptrunc float $r.g to half
    $r.l = insertelement <2 x half> poison, half $r.x, i32 0
    $r = insertelement <2 x half> $r.l, half $r.y, i32 1
sext8: i32 = i32
    $r.b = trunc i32 $a to i8
    $r = sext i8 $r.b to i32
zext8: i32 = i32
    $r.b = trunc i32 $a to i8
    $r = zext i8 $r.b to i32
ubfe: i32 = i32
    $n in 1 5 8 16 20
    $m in 1 7 255 4095 65535
    $r.s = lshr i32 $a, $n
    $r = and i32 $r.s, $m
sbfe: i32 = i32
    $n in 3 8 14 19
    $r.s = shl i32 $a, $n
    $r = ashr i32 $r.s, 19
ubfe64: i64 = i64
    $n in 1 12 32 40 51
    $m in 1 4095 65535 4294967295 34359738367
    $r.s = lshr i64 $a, $n
    $r = and i64 $r.s, $m
lshl_add: i32 = i32 i32
    $n in 1 2 3 4 9
    $r.s = shl i32 $a, $n
    $r = add i32 $r.s, $b
add_lshl: i32 = i32 i32
    $n in 1 2 5 16 31
    $r.s = add i32 $a, $b
    $r = shl i32 $r.s, $n
lshl_or: i32 = i32 i32
    $n in 1 8 16 24
    $r.s = shl i32 $a, $n
    $r = or i32 $r.s, $b
lshl_add64: i64 = i64 i64
    $n in 1 2 3 4 33
    $r.s = shl i64 $a, $n
    $r = add i64 $r.s, $b
bfm: i32 = i32 i32
    $r.w = and i32 $a, 31
    $r.n = and i32 $b, 31
    $r.s = shl i32 1, $r.w
    $r.m = sub i32 $r.s, 1
    $r = shl i32 $r.m, $r.n
umad24: i32 = i32 i32 i32
    $r.x = and i32 $a, 16777215
    $r.y = and i32 $b, 16777215
    $r.p = mul i32 $r.x, $r.y
    $r = add i32 $r.p, $c
smul24: i32 = i32 i32
    $r.x = shl i32 $a, 8
    $r.i = ashr i32 $r.x, 8
    $r.y = shl i32 $b, 8
    $r.j = ashr i32 $r.y, 8
    $r = mul i32 $r.i, $r.j
umad64: i64 = i32 i32 i64
    $r.x = zext i32 $a to i64
    $r.y = zext i32 $b to i64
    $r.p = mul i64 $r.x, $r.y
    $r = add i64 $r.p, $c
smad64: i64 = i32 i32 i64
    $r.x = sext i32 $a to i64
    $r.y = sext i32 $b to i64
    $r.p = mul i64 $r.x, $r.y
    $r = add i64 $r.p, $c
perm: i32 = i32 i32
    $h in 0 1 2 3 4 5 6 7
    $i in 0 1 2 3 4 5 6 7
    $j in 0 1 2 3 4 5 6 7
    $k in 0 1 2 3 4 5 6 7
    $r.x = bitcast i32 $a to <4 x i8>
    $r.y = bitcast i32 $b to <4 x i8>
    $r.s = shufflevector <4 x i8> $r.x, <4 x i8> $r.y, <4 x i32> <i32 $h, i32 $i, i32 $j, i32 $k>
    $r = bitcast <4 x i8> $r.s to i32
ubyte: float = i32
    $q in 0 8 16 24
    $r.s = lshr i32 $a, $q
    $r.b = and i32 $r.s, 255
    $r = uitofp i32 $r.b to float
halves: i64 = i32 i32
    $r.o = xor i32 $b, %zero
    $r.l = zext i32 $a to i64
    $r.w = zext i32 $r.o to i64
    $r.h = shl i64 $r.w, 32
    $r = or i64 $r.l, $r.h
sdot2: i32 = v2i16 v2i16 i32
    $r.c = xor i32 $c, %zero
    $r.x = sext <2 x i16> $a to <2 x i32>
    $r.y = sext <2 x i16> $b to <2 x i32>
    $r.p = mul <2 x i32> $r.x, $r.y
    $r.l = extractelement <2 x i32> $r.p, i32 0
    $r.h = extractelement <2 x i32> $r.p, i32 1
    $r.s = add i32 $r.l, $r.h
    $r.t = add i32 $r.s, $r.c
    $r = xor i32 $r.t, %zero
sdot4: i32 = i32 i32 i32
    $r.c = xor i32 $c, %zero
    $r.x = bitcast i32 $a to <4 x i8>
    $r.y = bitcast i32 $b to <4 x i8>
    $r.i = sext <4 x i8> $r.x to <4 x i32>
    $r.j = sext <4 x i8> $r.y to <4 x i32>
    $r.p = mul <4 x i32> $r.i, $r.j
    $r.p0 = extractelement <4 x i32> $r.p, i32 0
    $r.p1 = extractelement <4 x i32> $r.p, i32 1
    $r.p2 = extractelement <4 x i32> $r.p, i32 2
    $r.p3 = extractelement <4 x i32> $r.p, i32 3
    $r.s1 = add i32 $r.p0, $r.c
    $r.s2 = add i32 $r.p1, $r.s1
    $r.s3 = add i32 $r.p2, $r.s2
    $r.t = add i32 $r.p3, $r.s3
    $r = xor i32 $r.t, %zero
udot4: i32 = i32 i32 i32
    $r.c = xor i32 $c, %zero
    $r.x = bitcast i32 $a to <4 x i8>
    $r.y = bitcast i32 $b to <4 x i8>
    $r.i = zext <4 x i8> $r.x to <4 x i32>
    $r.j = zext <4 x i8> $r.y to <4 x i32>
    $r.p = mul <4 x i32> $r.i, $r.j
    $r.p0 = extractelement <4 x i32> $r.p, i32 0
    $r.p1 = extractelement <4 x i32> $r.p, i32 1
    $r.p2 = extractelement <4 x i32> $r.p, i32 2
    $r.p3 = extractelement <4 x i32> $r.p, i32 3
    $r.s1 = add i32 $r.p0, $r.c
    $r.s2 = add i32 $r.p1, $r.s1
    $r.s3 = add i32 $r.p2, $r.s2
    $r.t = add i32 $r.p3, $r.s3
    $r = xor i32 $r.t, %zero
udot2: i32 = v2i16 v2i16 i32
    $r.c = xor i32 $c, %zero
    $r.i = zext <2 x i16> $a to <2 x i32>
    $r.j = zext <2 x i16> $b to <2 x i32>
    $r.p = mul <2 x i32> $r.i, $r.j
    $r.p0 = extractelement <2 x i32> $r.p, i32 0
    $r.p1 = extractelement <2 x i32> $r.p, i32 1
    $r.s0 = add i32 $r.p0, $r.c
    $r.s1 = add i32 $r.p1, $r.s0
    $r = xor i32 $r.s1, %zero
sdot8: i32 = i32 i32 i32
    $r.c = xor i32 $c, %zero
    $r.la0 = shl i32 $a, 28
    $r.a0 = ashr i32 $r.la0, 28
    $r.lb0 = shl i32 $b, 28
    $r.b0 = ashr i32 $r.lb0, 28
    $r.p0 = mul i32 $r.a0, $r.b0
    $r.s0 = add i32 $r.p0, $r.c
    $r.la1 = shl i32 $a, 24
    $r.a1 = ashr i32 $r.la1, 28
    $r.lb1 = shl i32 $b, 24
    $r.b1 = ashr i32 $r.lb1, 28
    $r.p1 = mul i32 $r.a1, $r.b1
    $r.s1 = add i32 $r.p1, $r.s0
    $r.la2 = shl i32 $a, 20
    $r.a2 = ashr i32 $r.la2, 28
    $r.lb2 = shl i32 $b, 20
    $r.b2 = ashr i32 $r.lb2, 28
    $r.p2 = mul i32 $r.a2, $r.b2
    $r.s2 = add i32 $r.p2, $r.s1
    $r.la3 = shl i32 $a, 16
    $r.a3 = ashr i32 $r.la3, 28
    $r.lb3 = shl i32 $b, 16
    $r.b3 = ashr i32 $r.lb3, 28
    $r.p3 = mul i32 $r.a3, $r.b3
    $r.s3 = add i32 $r.p3, $r.s2
    $r.la4 = shl i32 $a, 12
    $r.a4 = ashr i32 $r.la4, 28
    $r.lb4 = shl i32 $b, 12
    $r.b4 = ashr i32 $r.lb4, 28
    $r.p4 = mul i32 $r.a4, $r.b4
    $r.s4 = add i32 $r.p4, $r.s3
    $r.la5 = shl i32 $a, 8
    $r.a5 = ashr i32 $r.la5, 28
    $r.lb5 = shl i32 $b, 8
    $r.b5 = ashr i32 $r.lb5, 28
    $r.p5 = mul i32 $r.a5, $r.b5
    $r.s5 = add i32 $r.p5, $r.s4
    $r.la6 = shl i32 $a, 4
    $r.a6 = ashr i32 $r.la6, 28
    $r.lb6 = shl i32 $b, 4
    $r.b6 = ashr i32 $r.lb6, 28
    $r.p6 = mul i32 $r.a6, $r.b6
    $r.s6 = add i32 $r.p6, $r.s5
    $r.a7 = ashr i32 $a, 28
    $r.b7 = ashr i32 $b, 28
    $r.p7 = mul i32 $r.a7, $r.b7
    $r.s7 = add i32 $r.p7, $r.s6
    $r = xor i32 $r.s7, %zero
udot8: i32 = i32 i32 i32
    $r.c = xor i32 $c, %zero
    $r.a0 = and i32 $a, 15
    $r.b0 = and i32 $b, 15
    $r.p0 = mul i32 $r.a0, $r.b0
    $r.s0 = add i32 $r.p0, $r.c
    $r.la1 = lshr i32 $a, 4
    $r.a1 = and i32 $r.la1, 15
    $r.lb1 = lshr i32 $b, 4
    $r.b1 = and i32 $r.lb1, 15
    $r.p1 = mul i32 $r.a1, $r.b1
    $r.s1 = add i32 $r.p1, $r.s0
    $r.la2 = lshr i32 $a, 8
    $r.a2 = and i32 $r.la2, 15
    $r.lb2 = lshr i32 $b, 8
    $r.b2 = and i32 $r.lb2, 15
    $r.p2 = mul i32 $r.a2, $r.b2
    $r.s2 = add i32 $r.p2, $r.s1
    $r.la3 = lshr i32 $a, 12
    $r.a3 = and i32 $r.la3, 15
    $r.lb3 = lshr i32 $b, 12
    $r.b3 = and i32 $r.lb3, 15
    $r.p3 = mul i32 $r.a3, $r.b3
    $r.s3 = add i32 $r.p3, $r.s2
    $r.la4 = lshr i32 $a, 16
    $r.a4 = and i32 $r.la4, 15
    $r.lb4 = lshr i32 $b, 16
    $r.b4 = and i32 $r.lb4, 15
    $r.p4 = mul i32 $r.a4, $r.b4
    $r.s4 = add i32 $r.p4, $r.s3
    $r.la5 = lshr i32 $a, 20
    $r.a5 = and i32 $r.la5, 15
    $r.lb5 = lshr i32 $b, 20
    $r.b5 = and i32 $r.lb5, 15
    $r.p5 = mul i32 $r.a5, $r.b5
    $r.s5 = add i32 $r.p5, $r.s4
    $r.la6 = lshr i32 $a, 24
    $r.a6 = and i32 $r.la6, 15
    $r.lb6 = lshr i32 $b, 24
    $r.b6 = and i32 $r.lb6, 15
    $r.p6 = mul i32 $r.a6, $r.b6
    $r.s6 = add i32 $r.p6, $r.s5
    $r.a7 = lshr i32 $a, 28
    $r.b7 = lshr i32 $b, 28
    $r.p7 = mul i32 $r.a7, $r.b7
    $r.s7 = add i32 $r.p7, $r.s6
    $r = xor i32 $r.s7, %zero
umulh24: i32 = i32 i32
    $r.x = and i32 $a, 16777215
    $r.y = and i32 $b, 16777215
    $r.i = zext i32 $r.x to i64
    $r.j = zext i32 $r.y to i64
    $r.p = mul i64 $r.i, $r.j
    $r.h = lshr i64 $r.p, 32
    $r = trunc i64 $r.h to i32
smad16: i32 = i16 i16 i32
    $r.x = sext i16 $a to i32
    $r.y = sext i16 $b to i32
    $r.p = mul i32 $r.x, $r.y
    $r = add i32 $r.p, $c
umad16: i32 = i16 i16 i32
    $r.x = zext i16 $a to i32
    $r.y = zext i16 $b to i32
    $r.p = mul i32 $r.x, $r.y
    $r = add i32 $r.p, $c
sat_pk: i16 = v2i16
    $r.l = call <2 x i16> @llvm.smax.v2i16(<2 x i16> $a, <2 x i16> zeroinitializer)
    $r.h = call <2 x i16> @llvm.smin.v2i16(<2 x i16> $r.l, <2 x i16> splat (i16 255))
    $r.t = trunc <2 x i16> $r.h to <2 x i8>
    $r = bitcast <2 x i8> $r.t to i16
"""
