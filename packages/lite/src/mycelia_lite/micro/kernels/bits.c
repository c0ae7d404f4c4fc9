/* Weights of 1 to 8 bits, which stay packed: a weight is (q - zero) * scale. q + 2^(bits - 1) lie one behind another, the first in the lowest bits of
 * a byte; rows begin with a byte. */

/* sum[0] += x times fields of `bits` from the bit `first` on, sum[1] += x. */
static void micro_add_products_bits(const float *x, const uint8_t *w, int32_t first, int32_t bits, int32_t count, float *sum)
{
    const uint32_t mask = (1u << bits) - 1u;
    const int32_t half = 1 << (bits - 1);
    float products = sum[0], total = sum[1];
    uint32_t held = 0;
    int32_t there = 0, i; /* bits in `held` */
    w += first >> 3;
    if ((first & 7) != 0 && count > 0) {
        held = (uint32_t)*w++ >> (first & 7);
        there = 8 - (first & 7);
    }
    for (i = 0; i < count; i++) {
        if (there < bits) {
            held |= (uint32_t)*w++ << there;
            there += 8;
        }
        products += x[i] * (float)((int32_t)(held & mask) - half);
        total += x[i];
        held >>= bits;
        there -= bits;
    }
    sum[0] = products;
    sum[1] = total;
}

typedef struct {
    int32_t rows, depth, outputs;
    int32_t bits, group, row_bytes; /* group: weights of a row that share scale and zero */
    float low, high;
} micro_linear_packed;

/* y [rows, outputs] = x [rows, depth] times w [outputs, depth], plus a bias or none; scales and zeros [groups, outputs], no zeros: all are 0. */
void micro_linear_bits(const micro_linear_packed *p, const float *x, const uint8_t *w, const float *scale, const float *zero, const float *bias,
                       float *y)
{
    int32_t row, o, k, g;
    for (row = 0; row < p->rows; row++, x += p->depth)
        for (o = 0; o < p->outputs; o++) {
            float all = bias ? bias[o] : 0.0f;
            for (k = 0, g = o; k < p->depth; k += p->group, g += p->outputs) {
                float sum[2] = {0.0f, 0.0f};
                micro_add_products_bits(x + k, w + o * p->row_bytes, k * p->bits, p->bits, p->group, sum);
                all += scale[g] * (zero ? sum[0] - zero[g] * sum[1] : sum[0]);
            }
            *y++ = micro_clamp(all, p->low, p->high);
        }
}

typedef struct {
    micro_conv shape;
    int32_t bits, row_bytes;
} micro_conv_packed;

/* Images with the channels last; w [out_channels, kernel_height, kernel_width, in_channels], scales and zeros [out_channels]. */
void micro_conv_bits(const micro_conv_packed *packed, const float *x, const uint8_t *w, const float *scale, const float *zero, const float *bias,
                     float *y)
{
    const micro_conv *p = &packed->shape;
    const int32_t channels = p->in_channels, bits = packed->bits;
    int32_t n, i, j, o, a, b, y_first, y_last, x_first, x_last;
    for (n = 0; n < p->batch; n++, x += p->in_height * p->in_width * p->in_step)
        for (i = 0; i < p->out_height; i++)
            for (j = 0; j < p->out_width; j++) {
                const int32_t top = i * p->stride_height - p->pad_top, left = j * p->stride_width - p->pad_left;
                const int32_t each = p->dilation_width == 1 && channels == p->in_step ? p->kernel_width : 1;
                micro_taps(top, p->kernel_height, p->dilation_height, p->in_height, &y_first, &y_last);
                micro_taps(left, p->kernel_width, p->dilation_width, p->in_width, &x_first, &x_last);
                for (o = 0; o < p->out_channels; o++) {
                    float sum[2] = {0.0f, 0.0f};
                    for (a = y_first; a < y_last; a++)
                        for (b = x_first; b < x_last; b += each) {
                            const int32_t at = (top + a * p->dilation_height) * p->in_width + left + b * p->dilation_width;
                            const int32_t taps = each == 1 ? 1 : x_last - x_first;
                            micro_add_products_bits(x + at * p->in_step, w + o * packed->row_bytes, (a * p->kernel_width + b) * channels * bits, bits,
                                                    taps * channels, sum);
                        }
                    sum[0] = scale[o] * (zero ? sum[0] - zero[o] * sum[1] : sum[0]);
                    *y++ = micro_clamp(bias ? sum[0] + bias[o] : sum[0], p->low, p->high);
                }
            }
}
