/* Forests of decision trees. */

typedef struct {
    int32_t rows, features, trees, targets;
    int32_t how; /* of the leaves of all trees: 0 the sum, 1 the mean, 2 the least, 3 the largest */
} micro_forest;

/* Whether an element goes on to the first of a node's two: 0 <=, 1 <, 2 >=, 3 >, 4 ==, 5 !=; with 8 added also what is not a number does. */
static int micro_holds(float x, float threshold, int32_t how)
{
    if (x != x) return (how & 8) != 0;
    switch (how & 7) {
        case 0: return x <= threshold;
        case 1: return x < threshold;
        case 2: return x >= threshold;
        case 3: return x > threshold;
        case 4: return x == threshold;
        default: return x != threshold;
    }
}

/* x [rows, features]; nodes of four: feature, the node if the comparison holds, the one if not, which comparison; of a leaf -1 and its row. */
void micro_trees_f32(const micro_forest *p, const float *x, const int32_t *nodes, const float *thresholds, const int32_t *roots, const float *leaves,
                     float *y)
{
    int32_t row, t, k;
    for (row = 0; row < p->rows; row++, x += p->features, y += p->targets) {
        for (k = 0; k < p->targets; k++) y[k] = 0.0f;
        for (t = 0; t < p->trees; t++) {
            int32_t at = roots[t];
            const float *leaf;
            while (nodes[4 * at] >= 0) at = nodes[4 * at + (micro_holds(x[nodes[4 * at]], thresholds[at], nodes[4 * at + 3]) ? 1 : 2)];
            leaf = leaves + nodes[4 * at + 1] * p->targets;
            for (k = 0; k < p->targets; k++) {
                if (t == 0 || (p->how == 2 && leaf[k] < y[k]) || (p->how == 3 && leaf[k] > y[k])) y[k] = leaf[k];
                else if (p->how < 2) y[k] += leaf[k];
            }
        }
        for (k = 0; p->how == 1 && k < p->targets; k++) y[k] /= (float)p->trees;
    }
}
