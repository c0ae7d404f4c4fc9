/* Pools of float32; images lie with the channels last, or first with `planes`. */

typedef struct {
    int32_t planes, in_height, in_width, channels; /* planes: images of which each pixel has `channels` elements */
    int32_t out_height, out_width;
    int32_t kernel_height, kernel_width, stride_height, stride_width, dilation_height, dilation_width, pad_top, pad_left;
    int32_t divisor; /* of means: 0 the elements in the window, -1 the window with its padding */
    int32_t bottom, right; /* how far padding reaches, for divisor -1 */
} micro_pool;

void micro_max_pool_f32(const micro_pool *p, const float *x, float *y)
{
    int32_t n, i, j, c, a, b, y_first, y_last, x_first, x_last;
    for (n = 0; n < p->planes; n++, x += p->in_height * p->in_width * p->channels)
        for (i = 0; i < p->out_height; i++)
            for (j = 0; j < p->out_width; j++) {
                const int32_t top = i * p->stride_height - p->pad_top, left = j * p->stride_width - p->pad_left;
                micro_taps(top, p->kernel_height, p->dilation_height, p->in_height, &y_first, &y_last);
                micro_taps(left, p->kernel_width, p->dilation_width, p->in_width, &x_first, &x_last);
                for (c = 0; c < p->channels; c++) {
                    float most = -INFINITY;
                    for (a = y_first; a < y_last; a++)
                        for (b = x_first; b < x_last; b++) {
                            const float v = x[((top + a * p->dilation_height) * p->in_width + left + b * p->dilation_width) * p->channels + c];
                            if (v > most || v != v) most = v;
                        }
                    *y++ = most;
                }
            }
}

void micro_avg_pool_f32(const micro_pool *p, const float *x, float *y)
{
    int32_t n, i, j, c, a, b, y_first, y_last, x_first, x_last;
    for (n = 0; n < p->planes; n++, x += p->in_height * p->in_width * p->channels)
        for (i = 0; i < p->out_height; i++)
            for (j = 0; j < p->out_width; j++) {
                const int32_t top = i * p->stride_height - p->pad_top, left = j * p->stride_width - p->pad_left;
                int32_t count = p->divisor;
                micro_taps(top, p->kernel_height, 1, p->in_height, &y_first, &y_last);
                micro_taps(left, p->kernel_width, 1, p->in_width, &x_first, &x_last);
                if (count == 0) count = (y_last - y_first) * (x_last - x_first);
                if (count < 0) {
                    const int32_t down = p->bottom - top < p->kernel_height ? p->bottom - top : p->kernel_height;
                    const int32_t across = p->right - left < p->kernel_width ? p->right - left : p->kernel_width;
                    count = down * across;
                }
                for (c = 0; c < p->channels; c++) {
                    float sum = 0.0f;
                    for (a = y_first; a < y_last; a++)
                        for (b = x_first; b < x_last; b++) sum += x[((top + a) * p->in_width + left + b) * p->channels + c];
                    *y++ = sum / (float)count;
                }
            }
}
