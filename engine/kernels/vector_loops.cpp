#include "vector_loops.hpp"

namespace tapegrad::detail {

template <class T> std::vector<const VectorLoops<T>*> all_vector_loops() {
  std::vector<const VectorLoops<T>*> all{&VectorLoopsFor<T>::baseline};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(&VectorLoopsFor<T>::avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    all.push_back(&VectorLoopsFor<T>::avx512);
#endif
  return all;
}

template <class T> const VectorLoops<T>& vector_loops() {
  static const VectorLoops<T>& best = *all_vector_loops<T>().back();
  return best;
}

template std::vector<const VectorLoops<float>*> all_vector_loops();
template std::vector<const VectorLoops<double>*> all_vector_loops();
template const VectorLoops<float>& vector_loops();
template const VectorLoops<double>& vector_loops();

}  // namespace tapegrad::detail
