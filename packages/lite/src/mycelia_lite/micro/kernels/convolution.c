/* Convolutions of float32 on images with the channels last. Pixels are made one after the other, so that a result may
 * overwrite the rows of the image that no later pixel reads. */

typedef struct {
    int32_t batch, in_height, in_width, in_channels;
    int32_t out_height, out_width, out_channels;
    int32_t kernel_height, kernel_width, stride_height, stride_width, dilation_height, dilation_width;
    int32_t pad_top, pad_left, group;
    int32_t in_step; /* elements from a pixel of the image to the next one, of which `in_channels` are read */
    float low, high;
} micro_conv;

/* The taps [first, last) of a window from `begin` on that lie within `size` places. */
static void micro_taps(int32_t begin, int32_t kernel, int32_t dilation, int32_t size, int32_t *first, int32_t *last)
{
    *first = begin < 0 ? (-begin + dilation - 1) / dilation : 0;
    *last = begin >= size ? 0 : (size - begin + dilation - 1) / dilation;
    if (*last > kernel) *last = kernel;
    if (*first > *last) *first = *last;
}

/* Sums of `count` outputs (4 or 1) of a pixel: rows of taps beside one another are one product. */
static void micro_conv_pixel(const micro_conv *p, const float *image, const float *w, int32_t y, int32_t x, int32_t channels, int32_t count,
                             float *sum)
{
    const int32_t size = p->kernel_height * p->kernel_width * channels;
    int32_t y_first, y_last, x_first, x_last, i, j;
    micro_taps(y, p->kernel_height, p->dilation_height, p->in_height, &y_first, &y_last);
    micro_taps(x, p->kernel_width, p->dilation_width, p->in_width, &x_first, &x_last);
    for (i = y_first; i < y_last; i++) {
        const float *row = image + (y + i * p->dilation_height) * p->in_width * p->in_step;
        const float *taps = w + i * p->kernel_width * channels;
        const int beside = p->dilation_width == 1 && channels == p->in_step;
        const int32_t each = beside ? (x_last - x_first) * channels : channels;
        for (j = x_first; j < x_last; j += beside ? x_last - x_first : 1) {
            const float *pixel = row + (x + j * p->dilation_width) * p->in_step;
            if (count == 4) micro_add_products4(pixel, taps + j * channels, size, each, sum);
            else sum[0] = micro_products(pixel, taps + j * channels, each, sum[0]);
        }
    }
}

/* w [out_channels, kernel_height, kernel_width, in_channels / group] */
void micro_conv_f32(const micro_conv *p, const float *x, const float *w, const float *bias, float *y)
{
    const int32_t channels = p->in_channels / p->group, outputs = p->out_channels / p->group;
    const int32_t size = p->kernel_height * p->kernel_width * channels;
    int32_t n, i, j, g, o, k, count;
    for (n = 0; n < p->batch; n++, x += p->in_height * p->in_width * p->in_step)
        for (i = 0; i < p->out_height; i++)
            for (j = 0; j < p->out_width; j++)
                for (g = 0; g < p->group; g++)
                    for (o = g * outputs; o < (g + 1) * outputs; o += count) {
                        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                        count = o + 4 <= (g + 1) * outputs ? 4 : 1;
                        for (k = 0; bias && k < count; k++) sum[k] = bias[o + k];
                        micro_conv_pixel(p, x + g * channels, w + o * size, i * p->stride_height - p->pad_top, j * p->stride_width - p->pad_left,
                                         channels, count, sum);
                        for (k = 0; k < count; k++) *y++ = micro_clamp(sum[k], p->low, p->high);
                    }
}

/* Each channel by a kernel of its own: w [kernel_height, kernel_width, channels] */
void micro_depthwise_f32(const micro_conv *p, const float *x, const float *w, const float *bias, float *y)
{
    const int32_t channels = p->in_channels;
    int32_t n, i, j, c, a, b, y_first, y_last, x_first, x_last;
    for (n = 0; n < p->batch; n++, x += p->in_height * p->in_width * p->in_step)
        for (i = 0; i < p->out_height; i++)
            for (j = 0; j < p->out_width; j++) {
                const int32_t top = i * p->stride_height - p->pad_top, left = j * p->stride_width - p->pad_left;
                micro_taps(top, p->kernel_height, p->dilation_height, p->in_height, &y_first, &y_last);
                micro_taps(left, p->kernel_width, p->dilation_width, p->in_width, &x_first, &x_last);
                for (c = 0; c < channels; c++) {
                    float sum = bias ? bias[c] : 0.0f;
                    for (a = y_first; a < y_last; a++) {
                        const float *pixel = x + ((top + a * p->dilation_height) * p->in_width + left + x_first * p->dilation_width) * p->in_step + c;
                        const float *tap = w + (a * p->kernel_width + x_first) * channels + c;
                        for (b = x_first; b < x_last; b++, pixel += p->dilation_width * p->in_step, tap += channels) sum += *pixel * *tap;
                    }
                    *y++ = micro_clamp(sum, p->low, p->high);
                }
            }
}

/* The transpose of a convolution: each pixel of x adds its kernel to y. w [in_channels, kernel_height, kernel_width, out_channels / group] */
void micro_conv_transpose_f32(const micro_conv *p, const float *x, const float *w, float *y)
{
    const int32_t channels = p->in_channels / p->group, outputs = p->out_channels / p->group, all = p->batch * p->out_height * p->out_width * p->out_channels;
    int32_t n, i, j, a, b, c, o;
    for (o = 0; o < all; o++) y[o] = 0.0f;
    for (n = 0; n < p->batch; n++, y += p->out_height * p->out_width * p->out_channels)
        for (i = 0; i < p->in_height; i++)
            for (j = 0; j < p->in_width; j++, x += p->in_channels)
                for (a = 0; a < p->kernel_height; a++)
                    for (b = 0; b < p->kernel_width; b++) {
                        const int32_t row = i * p->stride_height - p->pad_top + a * p->dilation_height;
                        const int32_t column = j * p->stride_width - p->pad_left + b * p->dilation_width;
                        float *pixel = y + (row * p->out_width + column) * p->out_channels;
                        if (row < 0 || row >= p->out_height || column < 0 || column >= p->out_width) continue;
                        for (c = 0; c < p->in_channels; c++) {
                            const float *tap = w + ((c * p->kernel_height + a) * p->kernel_width + b) * outputs;
                            float *out = pixel + c / channels * outputs;
                            for (o = 0; o < outputs; o++) out[o] += x[c] * tap[o];
                        }
                    }
}

/* The same with the channels first; w [out_channels, in_channels / group, kernel_height, kernel_width] */
void micro_conv_first_f32(const micro_conv *p, const float *x, const float *w, const float *bias, float *y)
{
    const int32_t channels = p->in_channels / p->group, outputs = p->out_channels / p->group, taps = p->kernel_height * p->kernel_width;
    int32_t n, o, i, j, c, a, b, y_first, y_last, x_first, x_last;
    for (n = 0; n < p->batch; n++, x += p->in_channels * p->in_height * p->in_width)
        for (o = 0; o < p->out_channels; o++)
            for (i = 0; i < p->out_height; i++)
                for (j = 0; j < p->out_width; j++) {
                    const int32_t top = i * p->stride_height - p->pad_top, left = j * p->stride_width - p->pad_left;
                    float sum = bias ? bias[o] : 0.0f;
                    micro_taps(top, p->kernel_height, p->dilation_height, p->in_height, &y_first, &y_last);
                    micro_taps(left, p->kernel_width, p->dilation_width, p->in_width, &x_first, &x_last);
                    for (c = 0; c < channels; c++) {
                        const float *plane = x + (o / outputs * channels + c) * p->in_height * p->in_width;
                        const float *kernel = w + (o * channels + c) * taps;
                        for (a = y_first; a < y_last; a++)
                            for (b = x_first; b < x_last; b++)
                                sum += plane[(top + a * p->dilation_height) * p->in_width + left + b * p->dilation_width] *
                                       kernel[a * p->kernel_width + b];
                    }
                    *y++ = micro_clamp(sum, p->low, p->high);
                }
}
