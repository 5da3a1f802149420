// The demo's decoder written straight in C++, one token a step, without any scheduler: what remains is arithmetic.
// Compiled by straight.py for the machine at hand; the compiler vectorises the loops.
#include <cmath>
#include <cstring>
#include <vector>

namespace {

struct Layer {
  const float *attention_norm, *query, *key, *value, *output, *mlp_norm, *gate, *up, *down;
};

struct Decoder {
  int vocab, d, layers, heads, kv_heads, ff, capacity, head_dim;
  const float *embedding, *final_norm, *head, *frequencies;
  std::vector<Layer> layer;
  std::vector<std::vector<float>> keys, values;  // by layer: [kv_heads, capacity, head_dim]
  std::vector<float> x, normed, query, mixed, scores, gate, up, cosine, sine;
  int length = 0;
};

// y = x W, W [rows, columns] row-major: four rows at a time keep y in registers and the loads going.
void multiply(const float* x, const float* w, int rows, int columns, float* __restrict y) {
  std::memset(y, 0, sizeof(float) * columns);
  int i = 0;
  for (; i + 4 <= rows; i += 4) {
    const float a = x[i], b = x[i + 1], c = x[i + 2], e = x[i + 3];
    const float *p = w + size_t(i) * columns, *q = p + columns, *r = q + columns, *s = r + columns;
    for (int j = 0; j < columns; ++j) y[j] += a * p[j] + b * q[j] + c * r[j] + e * s[j];
  }
  for (; i < rows; ++i)
    for (int j = 0; j < columns; ++j) y[j] += x[i] * w[size_t(i) * columns + j];
}

void normalize(const float* x, const float* weight, int n, float* y) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * x[i];
  const float scale = 1.0f / std::sqrt(sum / n + 1e-5f);
  for (int i = 0; i < n; ++i) y[i] = x[i] * scale * weight[i];
}

void rotate(const Decoder& m, float* head) {
  const int half = m.head_dim / 2;
  for (int i = 0; i < half; ++i) {
    const float low = head[i], high = head[i + half];
    head[i] = low * m.cosine[i] - high * m.sine[i];
    head[i + half] = high * m.cosine[i] + low * m.sine[i];
  }
}

void attend(Decoder& m, int l) {
  const Layer& w = m.layer[l];
  const int kv_width = m.kv_heads * m.head_dim, shared = m.heads / m.kv_heads, length = m.length + 1;
  normalize(m.x.data(), w.attention_norm, m.d, m.normed.data());
  multiply(m.normed.data(), w.query, m.d, m.d, m.query.data());
  multiply(m.normed.data(), w.key, m.d, kv_width, m.gate.data());
  multiply(m.normed.data(), w.value, m.d, kv_width, m.up.data());
  for (int h = 0; h < m.kv_heads; ++h) {
    rotate(m, m.gate.data() + h * m.head_dim);
    const size_t at = (size_t(h) * m.capacity + m.length) * m.head_dim;
    std::memcpy(&m.keys[l][at], m.gate.data() + h * m.head_dim, sizeof(float) * m.head_dim);
    std::memcpy(&m.values[l][at], m.up.data() + h * m.head_dim, sizeof(float) * m.head_dim);
  }
  const float scale = 1.0f / std::sqrt(float(m.head_dim));
  for (int h = 0; h < m.heads; ++h) {
    float* q = m.query.data() + h * m.head_dim;
    rotate(m, q);
    const float* keys = &m.keys[l][size_t(h / shared) * m.capacity * m.head_dim];
    const float* values = &m.values[l][size_t(h / shared) * m.capacity * m.head_dim];
    float largest = -1e30f, sum = 0;
    for (int t = 0; t < length; ++t) {
      float dot = 0;
      for (int i = 0; i < m.head_dim; ++i) dot += q[i] * keys[size_t(t) * m.head_dim + i];
      m.scores[t] = dot * scale;
      largest = std::fmax(largest, m.scores[t]);
    }
    for (int t = 0; t < length; ++t) sum += m.scores[t] = std::exp(m.scores[t] - largest);
    float* mixed = m.mixed.data() + h * m.head_dim;
    std::memset(mixed, 0, sizeof(float) * m.head_dim);
    for (int t = 0; t < length; ++t)
      for (int i = 0; i < m.head_dim; ++i) mixed[i] += m.scores[t] / sum * values[size_t(t) * m.head_dim + i];
  }
  multiply(m.mixed.data(), w.output, m.d, m.d, m.normed.data());
  for (int i = 0; i < m.d; ++i) m.x[i] += m.normed[i];
}

void feed_forward(Decoder& m, int l) {
  const Layer& w = m.layer[l];
  normalize(m.x.data(), w.mlp_norm, m.d, m.normed.data());
  multiply(m.normed.data(), w.gate, m.d, m.ff, m.gate.data());
  multiply(m.normed.data(), w.up, m.d, m.ff, m.up.data());
  for (int i = 0; i < m.ff; ++i) m.gate[i] = m.gate[i] / (1.0f + std::exp(-m.gate[i])) * m.up[i];
  multiply(m.gate.data(), w.down, m.ff, m.d, m.normed.data());
  for (int i = 0; i < m.d; ++i) m.x[i] += m.normed[i];
}

}  // namespace

// `weights`: embedding, nine per layer in the order of Layer, final_norm, head. They must outlive the decoder.
extern "C" Decoder* decoder_new(const int* sizes, const float* const* weights, const float* frequencies) {
  auto* m = new Decoder{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6], sizes[1] / sizes[3]};
  m->embedding = *weights++;
  for (int l = 0; l < m->layers; ++l, weights += 9)
    m->layer.push_back({weights[0], weights[1], weights[2], weights[3], weights[4], weights[5], weights[6], weights[7],
                        weights[8]});
  m->final_norm = weights[0];
  m->head = weights[1];
  m->frequencies = frequencies;
  const size_t cache = size_t(m->kv_heads) * m->capacity * m->head_dim;
  m->keys.assign(m->layers, std::vector<float>(cache));
  m->values = m->keys;
  for (auto* v : {&m->x, &m->normed, &m->query, &m->mixed}) v->resize(m->d);
  for (auto* v : {&m->gate, &m->up}) v->resize(m->ff > m->d ? m->ff : m->d);
  m->scores.resize(m->capacity);
  m->cosine.resize(m->head_dim / 2);
  m->sine.resize(m->head_dim / 2);
  return m;
}

extern "C" void decoder_reset(Decoder* m) { m->length = 0; }
extern "C" void decoder_delete(Decoder* m) { delete m; }

// False when the cache is full.
extern "C" bool decoder_step(Decoder* m, long token, float* logits) {
  if (m->length == m->capacity || token < 0 || token >= m->vocab) return false;
  for (int i = 0; i < m->head_dim / 2; ++i) {
    m->cosine[i] = std::cos(m->length * m->frequencies[i]);
    m->sine[i] = std::sin(m->length * m->frequencies[i]);
  }
  std::memcpy(m->x.data(), m->embedding + size_t(token) * m->d, sizeof(float) * m->d);
  for (int l = 0; l < m->layers; ++l) {
    attend(*m, l);
    feed_forward(*m, l);
  }
  normalize(m->x.data(), m->final_norm, m->d, m->normed.data());
  multiply(m->normed.data(), m->head, m->d, m->vocab, logits);
  ++m->length;
  return true;
}
