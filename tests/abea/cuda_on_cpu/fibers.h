// Changing from one fiber to another, for the player of thread blocks in cuda_on_cpu.h.
//
// It is most of what an operation of a warp costs: in assembly it takes a quarter of the time of setjmp and longjmp,
// which serve other processors than x86-64.

#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>

#include <ucontext.h>

namespace cuda_on_cpu {

// Where a fiber stands, or who launched it, while another one runs.
#if defined(__x86_64__)
struct Context {
    void* top;  // of its stack, where its registers are
};

extern "C" void cuda_on_cpu_switch(Context* from, const Context* to);
asm(R"(
.text
.type cuda_on_cpu_switch, @function
.hidden cuda_on_cpu_switch
cuda_on_cpu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq (%rsi), %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size cuda_on_cpu_switch, .-cuda_on_cpu_switch
)");

static inline void change(Context& from, const Context& to) { cuda_on_cpu_switch(&from, &to); }

// Let `function`, which does not return, begin on this stack.
static inline void begin_at(Context& context, char* stack, std::size_t size, void (*function)()) {
    const auto end = (reinterpret_cast<std::uintptr_t>(stack) + size) & ~std::uintptr_t{15};
    auto* top = reinterpret_cast<std::uint64_t*>(end);
    *--top = 0;  // where it would return to
    *--top = reinterpret_cast<std::uint64_t>(function);
    for (int i = 0; i < 6; ++i) *--top = 0;
    context.top = top;
}
#else
struct Context {
    ucontext_t start;
    std::jmp_buf paused;
    bool started = true;
};

static inline void change(Context& from, Context& to) {
    if (_setjmp(from.paused) != 0) return;
    if (to.started) _longjmp(to.paused, 1);
    to.started = true;
    setcontext(&to.start);
}

static inline void begin_at(Context& context, char* stack, std::size_t size, void (*function)()) {
    context.started = false;
    getcontext(&context.start);
    context.start.uc_stack.ss_sp = stack;
    context.start.uc_stack.ss_size = size;
    context.start.uc_link = nullptr;
    makecontext(&context.start, function, 0);
}
#endif

}  // namespace cuda_on_cpu
