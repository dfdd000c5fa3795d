;; Products with the quantised matrices of a GGUF file: a row becomes float32 numbers, and those
;; meet four tokens at a time. A block is 32 weights of a row. In Q4_1 it has 20 bytes: two float16
;; numbers, d and m, and 4 bits q for each weight, which is d q + m; in Q8_0 it has 34: d, and a
;; byte for each weight. All tokens are float32 rows, one after the other; their number is a
;; multiple of four.
(module
  (import "page" "memory" (memory 4))

  ;; The numbers of all float16 stand at the beginning, in the order of their bits.
  (func $half (param $at i32) (result f32)
    (f32.load (i32.shl (i32.load16_u (local.get $at)) (i32.const 2))))

  ;; 16 numbers d q + m of 16 bytes q
  (func $spread (param $q v128) (param $d v128) (param $m v128) (param $to i32)
    (local $low v128) (local $high v128)
    (local.set $low (i16x8.extend_low_i8x16_u (local.get $q)))
    (local.set $high (i16x8.extend_high_i8x16_u (local.get $q)))
    (v128.store (local.get $to) (f32x4.add (local.get $m) (f32x4.mul (local.get $d)
      (f32x4.convert_i32x4_u (i32x4.extend_low_i16x8_u (local.get $low))))))
    (v128.store offset=16 (local.get $to) (f32x4.add (local.get $m) (f32x4.mul (local.get $d)
      (f32x4.convert_i32x4_u (i32x4.extend_high_i16x8_u (local.get $low))))))
    (v128.store offset=32 (local.get $to) (f32x4.add (local.get $m) (f32x4.mul (local.get $d)
      (f32x4.convert_i32x4_u (i32x4.extend_low_i16x8_u (local.get $high))))))
    (v128.store offset=48 (local.get $to) (f32x4.add (local.get $m) (f32x4.mul (local.get $d)
      (f32x4.convert_i32x4_u (i32x4.extend_high_i16x8_u (local.get $high)))))))

  (func $q4_1 (param $from i32) (param $to i32)
    (local $q v128) (local $d v128) (local $m v128)
    (local.set $d (f32x4.splat (call $half (local.get $from))))
    (local.set $m (f32x4.splat (call $half (i32.add (local.get $from) (i32.const 2)))))
    (local.set $q (v128.load offset=4 (local.get $from)))
    (call $spread (v128.and (local.get $q) (v128.const i32x4 0x0f0f0f0f 0x0f0f0f0f 0x0f0f0f0f 0x0f0f0f0f))
      (local.get $d) (local.get $m) (local.get $to))
    (call $spread (i8x16.shr_u (local.get $q) (i32.const 4))
      (local.get $d) (local.get $m) (i32.add (local.get $to) (i32.const 64))))

  ;; q − 128 in place of q: the bytes have a sign
  (func $q8_0 (param $from i32) (param $to i32)
    (local $flip v128) (local $d v128) (local $m v128)
    (local.set $flip (v128.const i32x4 0x80808080 0x80808080 0x80808080 0x80808080))
    (local.set $d (f32x4.splat (call $half (local.get $from))))
    (local.set $m (f32x4.mul (local.get $d) (f32x4.splat (f32.const -128))))
    (call $spread (v128.xor (local.get $flip) (v128.load offset=2 (local.get $from)))
      (local.get $d) (local.get $m) (local.get $to))
    (call $spread (v128.xor (local.get $flip) (v128.load offset=18 (local.get $from)))
      (local.get $d) (local.get $m) (i32.add (local.get $to) (i32.const 64))))

  ;; A row of so many bytes as float32
  (func $row (export "row") (param $block i32) (param $from i32) (param $bytes i32) (param $to i32)
    (local $end i32)
    (local.set $end (i32.add (local.get $from) (local.get $bytes)))
    (loop $blocks
      (if (i32.eq (local.get $block) (i32.const 20))
        (then (call $q4_1 (local.get $from) (local.get $to)))
        (else (call $q8_0 (local.get $from) (local.get $to))))
      (local.set $from (i32.add (local.get $from) (local.get $block)))
      (local.set $to (i32.add (local.get $to) (i32.const 128)))
      (br_if $blocks (i32.lt_u (local.get $from) (local.get $end)))))

  (func $sum (param $of v128) (result f32)
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $of)) (f32x4.extract_lane 1 (local.get $of)))
      (f32.add (f32x4.extract_lane 2 (local.get $of)) (f32x4.extract_lane 3 (local.get $of)))))

  ;; The products of a row with four tokens of its width in bytes, to places so many bytes apart
  (func $four (param $row i32) (param $x i32) (param $width i32) (param $y i32) (param $apart i32)
    (local $at i32) (local $w v128) (local $x1 i32) (local $x2 i32) (local $x3 i32)
    (local $s0 v128) (local $s1 v128) (local $s2 v128) (local $s3 v128)
    (local.set $x1 (i32.add (local.get $x) (local.get $width)))
    (local.set $x2 (i32.add (local.get $x1) (local.get $width)))
    (local.set $x3 (i32.add (local.get $x2) (local.get $width)))
    (loop $columns
      (local.set $w (v128.load (i32.add (local.get $row) (local.get $at))))
      (local.set $s0 (f32x4.add (local.get $s0) (f32x4.mul (local.get $w)
        (v128.load (i32.add (local.get $x) (local.get $at))))))
      (local.set $s1 (f32x4.add (local.get $s1) (f32x4.mul (local.get $w)
        (v128.load (i32.add (local.get $x1) (local.get $at))))))
      (local.set $s2 (f32x4.add (local.get $s2) (f32x4.mul (local.get $w)
        (v128.load (i32.add (local.get $x2) (local.get $at))))))
      (local.set $s3 (f32x4.add (local.get $s3) (f32x4.mul (local.get $w)
        (v128.load (i32.add (local.get $x3) (local.get $at))))))
      (local.set $at (i32.add (local.get $at) (i32.const 16)))
      (br_if $columns (i32.lt_u (local.get $at) (local.get $width))))
    (f32.store (local.get $y) (call $sum (local.get $s0)))
    (local.set $y (i32.add (local.get $y) (local.get $apart)))
    (f32.store (local.get $y) (call $sum (local.get $s1)))
    (local.set $y (i32.add (local.get $y) (local.get $apart)))
    (f32.store (local.get $y) (call $sum (local.get $s2)))
    (local.set $y (i32.add (local.get $y) (local.get $apart)))
    (f32.store (local.get $y) (call $sum (local.get $s3))))

  ;; y = x Wᵀ: a matrix of so many rows, a row of so many blocks; tokens x; $line has room for a row
  (func (export "product") (param $block i32) (param $from i32) (param $rows i32) (param $blocks i32)
      (param $x i32) (param $tokens i32) (param $y i32) (param $line i32)
    (local $bytes i32) (local $width i32) (local $apart i32)
    (local $r i32) (local $t i32) (local $at_x i32) (local $at_y i32)
    (local.set $bytes (i32.mul (local.get $blocks) (local.get $block)))
    (local.set $width (i32.shl (local.get $blocks) (i32.const 7)))
    (local.set $apart (i32.shl (local.get $rows) (i32.const 2)))
    (loop $each
      (call $row (local.get $block) (local.get $from) (local.get $bytes) (local.get $line))
      (local.set $t (i32.const 0))
      (local.set $at_x (local.get $x))
      (local.set $at_y (i32.add (local.get $y) (i32.shl (local.get $r) (i32.const 2))))
      (loop $group
        (call $four (local.get $line) (local.get $at_x) (local.get $width) (local.get $at_y) (local.get $apart))
        (local.set $at_x (i32.add (local.get $at_x) (i32.shl (local.get $width) (i32.const 2))))
        (local.set $at_y (i32.add (local.get $at_y) (i32.shl (local.get $apart) (i32.const 2))))
        (local.set $t (i32.add (local.get $t) (i32.const 4)))
        (br_if $group (i32.lt_u (local.get $t) (local.get $tokens))))
      (local.set $from (i32.add (local.get $from) (local.get $bytes)))
      (local.set $r (i32.add (local.get $r) (i32.const 1)))
      (br_if $each (i32.lt_u (local.get $r) (local.get $rows)))))
)
