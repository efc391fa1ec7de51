//! Matrix product, the hot loop of the encoder.
//!
//! Both matrices are given by rows, as weight files store them, so that multiplied numbers are adjacent. The
//! code is compiled for the baseline CPU and for wide registers; the choice is made at run time.

use pulp::{Arch, Simd, WithSimd};

/// Rows of the left and right matrix multiplied at once; with more, the sums would not stay in registers.
const LEFT_ROWS: usize = 2;
const RIGHT_ROWS: usize = 4;

/// Multiplies every row of `left` with every row of `right`, each of length `length`; `out` has one row per
/// row of `left`.
pub(crate) fn products(left: &[f32], right: &[f32], length: usize, out: &mut [f32]) {
    Arch::new().dispatch(MatrixProduct { left, right, length, out });
}

struct MatrixProduct<'a> {
    left: &'a [f32],
    right: &'a [f32],
    length: usize,
    out: &'a mut [f32],
}

impl WithSimd for MatrixProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let MatrixProduct { left, right, length, out } = self;
        let width = right.len() / length;
        let mut columns = right.chunks_exact(RIGHT_ROWS * length);
        let mut column = 0;
        for block in &mut columns {
            blocks::<S, RIGHT_ROWS>(simd, left, block, &mut out[column..], width);
            column += RIGHT_ROWS;
        }
        for row in columns.remainder().chunks_exact(length) {
            blocks::<S, 1>(simd, left, row, &mut out[column..], width);
            column += 1;
        }
    }
}

/// Multiplies all rows of `left` with `N` rows of `right`; `out` begins at their column.
#[inline(always)]
fn blocks<S: Simd, const N: usize>(simd: S, left: &[f32], right: &[f32], out: &mut [f32], width: usize) {
    let length = right.len() / N;
    let mut rows = left.chunks_exact(LEFT_ROWS * length);
    let mut at = 0;
    for block in &mut rows {
        put(&block_product::<S, LEFT_ROWS, N>(simd, block, right, length), &mut out[at..], width);
        at += LEFT_ROWS * width;
    }
    for row in rows.remainder().chunks_exact(length) {
        put(&block_product::<S, 1, N>(simd, row, right, length), &mut out[at..], width);
        at += width;
    }
}

#[inline(always)]
fn put<const M: usize, const N: usize>(sums: &[[f32; N]; M], out: &mut [f32], width: usize) {
    for (row, sums) in sums.iter().enumerate() {
        out[row * width..][..N].copy_from_slice(sums);
    }
}

/// Multiplies `M` rows with `N` rows.
#[inline(always)]
fn block_product<S: Simd, const M: usize, const N: usize>(
    simd: S,
    left: &[f32],
    right: &[f32],
    length: usize,
) -> [[f32; N]; M] {
    let left: [_; M] = std::array::from_fn(|row| S::as_simd_f32s(&left[row * length..][..length]));
    let right: [_; N] = std::array::from_fn(|row| S::as_simd_f32s(&right[row * length..][..length]));
    let mut sums = [[simd.splat_f32s(0.0); N]; M];
    // Equal lengths let the compiler drop bounds checks.
    let n_steps = left[0].0.len();
    let left_steps = left.map(|(steps, _)| &steps[..n_steps]);
    let right_steps = right.map(|(steps, _)| &steps[..n_steps]);
    for at in 0..n_steps {
        for row in 0..M {
            for column in 0..N {
                sums[row][column] =
                    simd.mul_add_e_f32s(left_steps[row][at], right_steps[column][at], sums[row][column]);
            }
        }
    }
    let mut out = [[0.0; N]; M];
    for row in 0..M {
        for column in 0..N {
            let rest = left[row].1.iter().zip(right[column].1).map(|(one, other)| one * other);
            out[row][column] = simd.reduce_sum_f32s(sums[row][column]) + rest.sum::<f32>();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let number = |at: usize| ((at as u32).wrapping_mul(2_654_435_761) ^ seed) % 1_000;
        (0..count).map(|at| number(at) as f32 / 500.0 - 1.0).collect()
    }

    /// Shapes around the block and lane sizes.
    #[test]
    fn products_equal_the_naive_result() {
        for (rows, columns, length) in [(1, 1, 1), (2, 3, 7), (3, 4, 8), (4, 5, 9), (7, 9, 33), (13, 6, 24)] {
            let (left, right) = (numbers(rows * length, 1), numbers(columns * length, 2));
            let mut out = vec![f32::NAN; rows * columns];
            products(&left, &right, length, &mut out);
            for row in 0..rows {
                for column in 0..columns {
                    let pairs = left[row * length..][..length].iter().zip(&right[column * length..]);
                    let wanted: f64 = pairs.map(|(one, other)| f64::from(*one) * f64::from(*other)).sum();
                    let found = f64::from(out[row * columns + column]);
                    assert!((found - wanted).abs() < 1e-5, "{rows} {columns} {length}: {found} {wanted}");
                }
            }
        }
    }
}
