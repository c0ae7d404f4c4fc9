/* Recurrent layers over sequences [steps, batch, inputs]. Gates are computed in scratch memory, one sequence at a time. */

typedef struct {
    int32_t steps, batch, inputs, hidden;
    int32_t is_relu;
} micro_recurrent;

static float micro_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* gates[rows] = w_ih x + b_ih + w_hh h + b_hh */
static void micro_gates(const float *x, const float *h, const float *w_ih, const float *w_hh, const float *b_ih, const float *b_hh,
                        int32_t rows, int32_t inputs, int32_t hidden, float *gates)
{
    int32_t i;
    for (i = 0; i < rows; i++) {
        const float sum = micro_products(x, w_ih + i * inputs, inputs, b_ih ? b_ih[i] : 0.0f);
        gates[i] = sum + micro_products(h, w_hh + i * hidden, hidden, b_hh ? b_hh[i] : 0.0f);
    }
}

/* Gates in the order input, forget, cell, output; scratch: 4 hidden. */
void micro_lstm_f32(const micro_recurrent *p, const float *x, const float *h0, const float *c0, const float *w_ih, const float *w_hh,
                    const float *b_ih, const float *b_hh, float *y, float *h, float *c, void *scratch)
{
    float *gates = (float *)scratch;
    int32_t t, n, i;
    memcpy(h, h0, (size_t)(p->batch * p->hidden) * sizeof(float));
    memcpy(c, c0, (size_t)(p->batch * p->hidden) * sizeof(float));
    for (t = 0; t < p->steps; t++)
        for (n = 0; n < p->batch; n++, x += p->inputs, y += p->hidden) {
            float *state = h + n * p->hidden, *cell = c + n * p->hidden;
            micro_gates(x, state, w_ih, w_hh, b_ih, b_hh, 4 * p->hidden, p->inputs, p->hidden, gates);
            for (i = 0; i < p->hidden; i++) {
                const float in = micro_sigmoid(gates[i]), forget = micro_sigmoid(gates[p->hidden + i]);
                cell[i] = forget * cell[i] + in * tanhf(gates[2 * p->hidden + i]);
                state[i] = micro_sigmoid(gates[3 * p->hidden + i]) * tanhf(cell[i]);
                y[i] = state[i];
            }
        }
}

/* Gates in the order reset, update, new, the reset behind the product; scratch: 6 hidden. */
void micro_gru_f32(const micro_recurrent *p, const float *x, const float *h0, const float *w_ih, const float *w_hh, const float *b_ih,
                   const float *b_hh, float *y, float *h, void *scratch)
{
    float *gates = (float *)scratch, *of_state = gates + 3 * p->hidden;
    int32_t t, n, i;
    memcpy(h, h0, (size_t)(p->batch * p->hidden) * sizeof(float));
    for (t = 0; t < p->steps; t++)
        for (n = 0; n < p->batch; n++, x += p->inputs, y += p->hidden) {
            float *state = h + n * p->hidden;
            for (i = 0; i < 3 * p->hidden; i++) {
                gates[i] = micro_products(x, w_ih + i * p->inputs, p->inputs, b_ih ? b_ih[i] : 0.0f);
                of_state[i] = micro_products(state, w_hh + i * p->hidden, p->hidden, b_hh ? b_hh[i] : 0.0f);
            }
            for (i = 0; i < p->hidden; i++) {
                const float reset = micro_sigmoid(gates[i] + of_state[i]);
                const float update = micro_sigmoid(gates[p->hidden + i] + of_state[p->hidden + i]);
                const float fresh = tanhf(gates[2 * p->hidden + i] + reset * of_state[2 * p->hidden + i]);
                state[i] = (1.0f - update) * fresh + update * state[i];
                y[i] = state[i];
            }
        }
}

/* Gates in the order update, reset, new, the reset in front of the product; x holds the inputs' part; scratch: 3 hidden. */
void micro_gru_before_f32(const micro_recurrent *p, const float *x, const float *w_hh, const float *b_hh, const float *h0, float *y, float *h,
                          void *scratch)
{
    float *update = (float *)scratch, *gated = update + p->hidden;
    int32_t t, n, i;
    memcpy(h, h0, (size_t)(p->batch * p->hidden) * sizeof(float));
    for (t = 0; t < p->steps; t++)
        for (n = 0; n < p->batch; n++, x += 3 * p->hidden, y += p->hidden) {
            float *state = h + n * p->hidden;
            for (i = 0; i < 2 * p->hidden; i++)
                update[i] = micro_sigmoid(x[i] + micro_products(state, w_hh + i * p->hidden, p->hidden, b_hh[i]));
            for (i = 0; i < p->hidden; i++) gated[i] *= state[i];
            for (i = 0; i < p->hidden; i++) {
                const int32_t row = 2 * p->hidden + i;
                const float fresh = tanhf(x[row] + micro_products(gated, w_hh + row * p->hidden, p->hidden, b_hh[row]));
                y[i] = update[i] * state[i] + (1.0f - update[i]) * fresh;
            }
            memcpy(state, y, (size_t)p->hidden * sizeof(float));
        }
}

/* One gate; scratch: hidden. */
void micro_rnn_f32(const micro_recurrent *p, const float *x, const float *h0, const float *w_ih, const float *w_hh, const float *b_ih,
                   const float *b_hh, float *y, float *h, void *scratch)
{
    float *gates = (float *)scratch;
    int32_t t, n, i;
    memcpy(h, h0, (size_t)(p->batch * p->hidden) * sizeof(float));
    for (t = 0; t < p->steps; t++)
        for (n = 0; n < p->batch; n++, x += p->inputs, y += p->hidden) {
            float *state = h + n * p->hidden;
            micro_gates(x, state, w_ih, w_hh, b_ih, b_hh, p->hidden, p->inputs, p->hidden, gates);
            for (i = 0; i < p->hidden; i++) {
                state[i] = p->is_relu ? micro_clamp(gates[i], 0.0f, INFINITY) : tanhf(gates[i]);
                y[i] = state[i];
            }
        }
}
