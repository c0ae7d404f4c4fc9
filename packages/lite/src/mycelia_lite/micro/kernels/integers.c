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
static int32_t micro_whole_f32(float x)
{
    return fabsf(x) < 2147483648.0f ? (int32_t)rintf(x) : -2147483647 - 1;
}

static int32_t micro_whole_i32(int32_t x)
{
    return x;
}

/* A number in steps of the result as its integer, of halves the even one; what is not a number is the least. */
static int32_t micro_rounded(float x, int32_t zero, int32_t low, int32_t high)
{
    const float least = (float)(low - zero), most = (float)(high - zero);
    x = x > least ? x : least;
    return (int32_t)rintf(x < most ? x : most) + zero;
}

typedef struct {
    int32_t columns, zero, low, high;
    int32_t even; /* from this element on negative halves go down, in whatever column */
    int32_t way; /* factors are 0 fixed point, 1 real; 2 real and results float32; 3 there are none, results are float32 */
} micro_scaling;

/* The element i, of a column, by its factors. Those of fixed point are multipliers, left and right shifts, whether negative halves go down,
 * `columns` each. */
static void micro_store_scaled(const micro_scaling *p, int32_t x, const void *factors, int32_t i, int32_t c, void *y)
{
    if (p->way == 0) {
        const int32_t *own = (const int32_t *)factors + c, down = i < p->even ? own[3 * p->columns] : -1;
        ((uint8_t *)y)[i] = (uint8_t)micro_rescale(x, own[0], own[p->columns], own[2 * p->columns], down, p->zero, p->low, p->high);
    } else {
        const float v = p->way == 3 ? (float)x : (float)x * ((const float *)factors)[c];
        if (p->way == 1) ((uint8_t *)y)[i] = (uint8_t)micro_rounded(v, p->zero, p->low, p->high);
        else ((float *)y)[i] = v;
    }
}

/* For i8, u8, i8w, u8w: sum[r] += (x - zero) * row r of w, of `rows` (4 or 1) that are `stride` elements apart. */
static void micro_add_products_SUFFIX(const TYPE *x, int32_t zero, const WEIGHT *w, int32_t stride, int32_t rows, int32_t count, int32_t *sum)
{
    int32_t i;
    if (rows == 4) {
        const WEIGHT *w1 = w + stride, *w2 = w1 + stride, *w3 = w2 + stride;
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
    int32_t x_zero;
    micro_scaling scaling;
} micro_linear_integers;

/* For i8, u8, i8w, u8w: y [rows, outputs] = x [rows, depth] times w [outputs, depth], plus a bias or none, scaled. */
void micro_linear_SUFFIX(const micro_linear_integers *p, const TYPE *x, const WEIGHT *w, const int32_t *bias, const void *factors, void *y)
{
    int32_t row, o, k, count, at = 0;
    for (row = 0; row < p->rows; row++, x += p->depth)
        for (o = 0; o < p->outputs; o += count) {
            int32_t sum[4] = {0, 0, 0, 0};
            count = o + 4 <= p->outputs ? 4 : 1;
            for (k = 0; bias && k < count; k++) sum[k] = bias[o + k];
            micro_add_products_SUFFIX(x, p->x_zero, w + o * p->depth, p->depth, count, p->depth, sum);
            for (k = 0; k < count; k++) micro_store_scaled(&p->scaling, sum[k], factors, at++, o + k, y);
        }
}

typedef struct {
    int32_t batch, in_height, in_width, in_channels;
    int32_t out_height, out_width, out_channels;
    int32_t kernel_height, kernel_width, stride_height, stride_width, dilation_height, dilation_width;
    int32_t pad_top, pad_left, group;
    int32_t in_step; /* elements from a pixel of the image to the next one, of which `in_channels` are read */
    int32_t x_zero;
    micro_scaling scaling;
} micro_conv_integers;

/* For i8, u8, i8w, u8w: w [out_channels, kernel_height, kernel_width, in_channels / group]; padding stands for the zero point. */
void micro_conv_SUFFIX(const micro_conv_integers *p, const TYPE *x, const WEIGHT *w, const int32_t *bias, const void *factors, void *y)
{
    const int32_t channels = p->in_channels / p->group, outputs = p->out_channels / p->group;
    const int32_t size = p->kernel_height * p->kernel_width * channels;
    const int beside = p->dilation_width == 1 && channels == p->in_step;
    int32_t n, i, j, g, o, k, a, b, count, y_first, y_last, x_first, x_last, at = 0;
    for (n = 0; n < p->batch; n++, x += p->in_height * p->in_width * p->in_step)
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
                                const int32_t pixel = (top + a * p->dilation_height) * p->in_width + left + b * p->dilation_width;
                                micro_add_products_SUFFIX(x + pixel * p->in_step + g * channels, p->x_zero,
                                                          w + o * size + (a * p->kernel_width + b) * channels, size, count, each * channels, sum);
                            }
                        for (k = 0; k < count; k++) micro_store_scaled(&p->scaling, sum[k], factors, at++, o + k, y);
                    }
            }
}

/* For i8, u8, i8w, u8w: Each channel by a kernel of its own: w [kernel_height, kernel_width, channels] */
void micro_depthwise_SUFFIX(const micro_conv_integers *p, const TYPE *x, const WEIGHT *w, const int32_t *bias, const void *factors, void *y)
{
    const int32_t channels = p->in_channels;
    int32_t n, i, j, c, a, b, y_first, y_last, x_first, x_last, at = 0;
    for (n = 0; n < p->batch; n++, x += p->in_height * p->in_width * p->in_step)
        for (i = 0; i < p->out_height; i++)
            for (j = 0; j < p->out_width; j++) {
                const int32_t top = i * p->stride_height - p->pad_top, left = j * p->stride_width - p->pad_left;
                micro_taps(top, p->kernel_height, p->dilation_height, p->in_height, &y_first, &y_last);
                micro_taps(left, p->kernel_width, p->dilation_width, p->in_width, &x_first, &x_last);
                for (c = 0; c < channels; c++) {
                    int32_t sum = bias ? bias[c] : 0;
                    for (a = y_first; a < y_last; a++) {
                        const TYPE *pixel = x + ((top + a * p->dilation_height) * p->in_width + left + x_first * p->dilation_width) * p->in_step + c;
                        const WEIGHT *tap = w + (a * p->kernel_width + x_first) * channels + c;
                        for (b = x_first; b < x_last; b++, pixel += p->dilation_width * p->in_step, tap += channels)
                            sum += (*pixel - p->x_zero) * *tap;
                    }
                    micro_store_scaled(&p->scaling, sum, factors, at++, c, y);
                }
            }
}

typedef struct {
    int32_t count;
    micro_scaling scaling;
} micro_columns;

/* For f32, i32: Whole numbers by the factors of their columns. */
void micro_rescale_columns_SUFFIX(const micro_columns *p, const TYPE *x, const void *factors, void *y)
{
    int32_t i;
    for (i = 0; i < p->count; i++) micro_store_scaled(&p->scaling, micro_whole_SUFFIX(x[i]), factors, i, i % p->scaling.columns, y);
}

typedef struct {
    int32_t batch, in_height, in_width, channels, out_height, out_width;
    int32_t kernel_height, kernel_width, stride_height, stride_width, pad_top, pad_left;
    int32_t largest, x_zero, zero, low, high;
    double scale; /* a step of x in steps of the result */
} micro_pool_integers;

/* For i8, u8: The largest element of windows, or the mean of what of them lies in the image. */
void micro_pool_SUFFIX(const micro_pool_integers *p, const TYPE *x, TYPE *y)
{
    int32_t n, i, j, c, a, b, y_first, y_last, x_first, x_last;
    for (n = 0; n < p->batch; n++, x += p->in_height * p->in_width * p->channels)
        for (i = 0; i < p->out_height; i++)
            for (j = 0; j < p->out_width; j++) {
                const int32_t top = i * p->stride_height - p->pad_top, left = j * p->stride_width - p->pad_left;
                int32_t count;
                float scale;
                micro_taps(top, p->kernel_height, 1, p->in_height, &y_first, &y_last);
                micro_taps(left, p->kernel_width, 1, p->in_width, &x_first, &x_last);
                count = (y_last - y_first) * (x_last - x_first);
                scale = (float)(p->largest || count == 0 ? p->scale : p->scale / count);
                for (c = 0; c < p->channels; c++) {
                    int32_t sum = p->largest && count > 0 ? -p->x_zero - 128 : 0;
                    for (a = y_first; a < y_last; a++)
                        for (b = x_first; b < x_last; b++) {
                            const int32_t v = x[((top + a) * p->in_width + left + b) * p->channels + c] - p->x_zero;
                            if (!p->largest) sum += v;
                            else if (v > sum) sum = v;
                        }
                    *y++ = (TYPE)micro_rounded((float)sum * scale, p->zero, p->low, p->high);
                }
            }
}

typedef struct {
    int32_t rows, depth, together;
} micro_ranges;

/* The factor by which numbers fit from -127 to 127; no number if one of them is not finite. */
static float micro_range(const float *x, int32_t count)
{
    float most = 0.0f, wrong = 0.0f;
    int32_t i;
    for (i = 0; i < count; i++) {
        const float size = x[i] < 0.0f ? -x[i] : x[i];
        if (size > most) most = size;
        wrong += x[i] * 0.0f;
    }
    return most + wrong == 0.0f ? 1.0f : (most + wrong) / 127.0f;
}

/* Rows as integers by a scale for each of them, or (`together`) one for all. */
void micro_quantize_rows(const micro_ranges *p, const float *x, int8_t *y, float *scales)
{
    const float all = p->together ? micro_range(x, p->rows * p->depth) : 1.0f;
    int32_t r, i;
    if (p->together) scales[0] = all;
    for (r = 0; r < p->rows; r++, x += p->depth) {
        const float scale = p->together ? all : micro_range(x, p->depth);
        if (!p->together) scales[r] = scale;
        for (i = 0; i < p->depth; i++) *y++ = (int8_t)micro_rounded(x[i] / scale, 0, -127, 127);
    }
}
