/* Integers times real numbers in fixed point. */

/* x * 2^left * multiplier / 2^31 with halves up, then / 2^right with halves up or (`down`: -1) of negative ones down; within limits. */
static int32_t micro_rescale(int32_t x, int32_t multiplier, int32_t left, int32_t right, int32_t down, int32_t zero, int32_t low, int32_t high)
{
    const int64_t product = (int64_t)((uint64_t)(int64_t)x * ((uint64_t)(int64_t)multiplier << left));
    const int64_t wide = (product + ((int64_t)1 << 30)) >> 31, half = right ? (int64_t)1 << (right - 1) : 0;
    const int64_t scaled = ((wide + half + (wide < 0 ? down : 0)) >> right) + zero;
    return (int32_t)(scaled < low ? low : scaled > high ? high : scaled);
}

/* The nearest whole number, of halves the even one. */
static int32_t micro_whole(float x)
{
    return fabsf(x) < 2147483648.0f ? (int32_t)rintf(x) : -2147483647 - 1;
}

/* The same by the factors of a column: multipliers, left and right shifts, whether negative halves go down, `columns` each. */
static int32_t micro_rescale_column(int32_t x, const int32_t *factors, int32_t columns, int32_t c, int32_t zero, int32_t low, int32_t high)
{
    const int32_t *own = factors + c;
    return micro_rescale(x, own[0], own[columns], own[2 * columns], own[3 * columns], zero, low, high);
}

/* sum[r] += (x - zero) * row r of w, of `rows` (4 or 1) that are `stride` elements apart. */
static void micro_add_products_i8(const int8_t *x, int32_t zero, const int8_t *w, int32_t stride, int32_t rows, int32_t count, int32_t *sum)
{
    int32_t i;
    if (rows == 4) {
        const int8_t *w1 = w + stride, *w2 = w1 + stride, *w3 = w2 + stride;
        int32_t s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3];
        for (i = 0; i < count; i++) {
            const int32_t v = x[i] - zero;
            s0 += v * w[i];
            s1 += v * w1[i];
            s2 += v * w2[i];
            s3 += v * w3[i];
        }
        sum[0] = s0;
        sum[1] = s1;
        sum[2] = s2;
        sum[3] = s3;
        return;
    }
    for (i = 0; i < count; i++) sum[0] += (x[i] - zero) * w[i];
}

typedef struct {
    int32_t rows, depth, outputs;
    int32_t x_zero, zero, low, high;
} micro_linear_integers;

/* y [rows, outputs] = x [rows, depth] times w [outputs, depth], plus a bias or none, scaled. */
void micro_linear_i8(const micro_linear_integers *p, const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *factors, int8_t *y)
{
    int32_t row, o, k, count;
    for (row = 0; row < p->rows; row++, x += p->depth)
        for (o = 0; o < p->outputs; o += count) {
            int32_t sum[4] = {0, 0, 0, 0};
            count = o + 4 <= p->outputs ? 4 : 1;
            for (k = 0; bias && k < count; k++) sum[k] = bias[o + k];
            micro_add_products_i8(x, p->x_zero, w + o * p->depth, p->depth, count, p->depth, sum);
            for (k = 0; k < count; k++)
                *y++ = (int8_t)micro_rescale_column(sum[k], factors, p->outputs, o + k, p->zero, p->low, p->high);
        }
}

typedef struct {
    int32_t batch, in_height, in_width, in_channels;
    int32_t out_height, out_width, out_channels;
    int32_t kernel_height, kernel_width, stride_height, stride_width, dilation_height, dilation_width;
    int32_t pad_top, pad_left, group;
    int32_t x_zero, zero, low, high;
} micro_conv_integers;

/* w [out_channels, kernel_height, kernel_width, in_channels / group]; padding stands for the zero point. */
void micro_conv_i8(const micro_conv_integers *p, const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *factors, int8_t *y)
{
    const int32_t channels = p->in_channels / p->group, outputs = p->out_channels / p->group;
    const int32_t size = p->kernel_height * p->kernel_width * channels;
    const int beside = p->dilation_width == 1 && channels == p->in_channels;
    int32_t n, i, j, g, o, k, a, b, count, y_first, y_last, x_first, x_last;
    for (n = 0; n < p->batch; n++, x += p->in_height * p->in_width * p->in_channels)
        for (i = 0; i < p->out_height; i++)
            for (j = 0; j < p->out_width; j++) {
                const int32_t top = i * p->stride_height - p->pad_top, left = j * p->stride_width - p->pad_left;
                micro_taps(top, p->kernel_height, p->dilation_height, p->in_height, &y_first, &y_last);
                micro_taps(left, p->kernel_width, p->dilation_width, p->in_width, &x_first, &x_last);
                for (g = 0; g < p->group; g++)
                    for (o = g * outputs; o < (g + 1) * outputs; o += count) {
                        const int32_t each = beside ? x_last - x_first : 1;
                        int32_t sum[4] = {0, 0, 0, 0};
                        count = o + 4 <= (g + 1) * outputs ? 4 : 1;
                        for (k = 0; bias && k < count; k++) sum[k] = bias[o + k];
                        for (a = y_first; a < y_last; a++)
                            for (b = x_first; b < x_last; b += each) {
                                const int32_t at = (top + a * p->dilation_height) * p->in_width + left + b * p->dilation_width;
                                micro_add_products_i8(x + at * p->in_channels + g * channels, p->x_zero,
                                                      w + o * size + (a * p->kernel_width + b) * channels, size, count, each * channels, sum);
                            }
                        for (k = 0; k < count; k++)
                            *y++ = (int8_t)micro_rescale_column(sum[k], factors, p->out_channels, o + k, p->zero, p->low, p->high);
                    }
            }
}

/* Each channel by a kernel of its own: w [kernel_height, kernel_width, channels] */
void micro_depthwise_i8(const micro_conv_integers *p, const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *factors, int8_t *y)
{
    const int32_t channels = p->in_channels;
    int32_t n, i, j, c, a, b, y_first, y_last, x_first, x_last;
    for (n = 0; n < p->batch; n++, x += p->in_height * p->in_width * channels)
        for (i = 0; i < p->out_height; i++)
            for (j = 0; j < p->out_width; j++) {
                const int32_t top = i * p->stride_height - p->pad_top, left = j * p->stride_width - p->pad_left;
                micro_taps(top, p->kernel_height, p->dilation_height, p->in_height, &y_first, &y_last);
                micro_taps(left, p->kernel_width, p->dilation_width, p->in_width, &x_first, &x_last);
                for (c = 0; c < channels; c++) {
                    int32_t sum = bias ? bias[c] : 0;
                    for (a = y_first; a < y_last; a++) {
                        const int8_t *pixel = x + ((top + a * p->dilation_height) * p->in_width + left + x_first * p->dilation_width) * channels + c;
                        const int8_t *tap = w + (a * p->kernel_width + x_first) * channels + c;
                        for (b = x_first; b < x_last; b++, pixel += p->dilation_width * channels, tap += channels)
                            sum += (*pixel - p->x_zero) * *tap;
                    }
                    *y++ = (int8_t)micro_rescale_column(sum, factors, channels, c, p->zero, p->low, p->high);
                }
            }
}

typedef struct {
    int32_t count, columns;
    int32_t zero, low, high;
} micro_columns;

/* Whole numbers by the factors of their columns; y: the bits of int8 or uint8. */
void micro_rescale_columns_f32(const micro_columns *p, const float *x, const int32_t *factors, uint8_t *y)
{
    int32_t i;
    for (i = 0; i < p->count; i++)
        y[i] = (uint8_t)micro_rescale_column(micro_whole(x[i]), factors, p->columns, i % p->columns, p->zero, p->low, p->high);
}
