"""Mistakes in kernel features and in the coefficients of regression while reading."""

from faults.fault import faults

FAULTS = faults(r"""
kernel/random_features | numpy
    Fourier: not divided by √r | ⟦scale * →⟧xp.concat([xp.cos(angles), xp.sin(angles)], axis=-1)
    Fourier: divided by √(2r) | (wide), 1 / math.sqrt(⟦→2 * ⟧frequencies.shape[0])\n    return xp.
    Fourier: cosines alone | [xp.cos(angles), xp.⟦sin→cos⟧(angles)]
    positive: without half the square | xp.exp(angles⟦ - half_square→⟧)
    positive: the whole square | half_square = ⟦0.5→1.0⟧ * xp
    positive: half the square added | xp.exp(angles ⟦-→+⟧ half_square)
    positive: divided by r | scale * ⟦→scale * ⟧xp.exp
    positive: the square of all points | xp.sum(wide * wide⟦, axis=-1, keepdims=True→⟧)
    regular: frequencies of half the period | ⟦2→4⟧ * math.pi / period
    regular: frequency 0 counts twice | ⟦np.where(j == 0, 1, 2)→2⟧
    regular: the spectrum without ½ | -⟦0.5→1.0⟧ *
    regular: weights without their root |
        np.⟦sqrt(np.where(j == 0, 1, 2) * series)→where(j == 0, 1, 2) * series⟧
    regular: no length scale before the series | math.sqrt(2 * math.pi) ⟦* length_scale →⟧/ period
    regular: the frequencies start at 1 | j = np.arange(⟦count→1, count + 1⟧)
    frequencies transposed |
        @ ⟦frequencies.mT→xp.reshape(frequencies, (frequencies.shape[1], frequencies.shape[0]))⟧
linear_attention/online_regression | numpy
    delta: the pair corrects itself | xp.tril(gram⟦, k=-1→⟧), rate
    delta: the pairs after count | rate * xp.⟦tril(gram, k=-1)→triu(gram, k=1)⟧
    delta: all pairs count | rate * ⟦xp.tril(gram, k=-1)→gram * (1 - xp.eye(gram.shape[-1]))⟧
    delta: no beta before the values | , ⟦rate * →⟧values
    delta: no beta in the matrix | ⟦rate * →⟧xp.tril
    delta: the sum | ⟦rate * xp.tril(gram, k=-1)→0 * gram⟧
    delta: a beta per pair in the columns | [..., None⟦→, :⟧]\n
    passes: the variance is the deviation | numbers.nonnegative(noise=noise)⟦ ** 2→⟧
    passes: no noise | xp.tril(gram)⟦ + variance * one→⟧
    passes: Jacobi's, all pairs at once | ⟦xp.tril(gram) + variance * one, xp.triu(gram, k=1)
        →one * (gram + variance), gram * (1 - one)⟧
    passes: one too many | range(count⟦→ + 1⟧)
    passes: the pass before is forgotten | u = first⟦ - carried @ u→⟧
    passes: the pass before is added | first ⟦-→+⟧ carried @ u
    recursive: the variance is the deviation | numbers.positive(noise=noise)⟦ ** 2→⟧
    recursive: the covariance stays | covariance = covariance ⟦-→+ 0 *⟧ gain * moved.mT
    recursive: the prediction is not taken off | - ⟦→0 * ⟧row @ mean
    recursive: the first pair left out | for i in range(⟦→1, ⟧rows.shape[-2])
    recursive: a gain without the noise | (row @ moved⟦ + variance→⟧)
    recursive: the covariance is that of no noise | gain * moved.mT⟦→ / (1 + variance)⟧\n
""")
