// Global operator new and delete over size-class free lists.
//
// A simulation makes and frees some dozen small objects (packets, buffers, events) per packet and
// hop. The program has one thread, so a free list per size needs no locks and keeps what was just
// freed in the cache: about a fifth less CPU time than with the C library's allocator. Results do
// not depend on addresses.
//
// Small objects live in one reserved arena, cut into spans of one size class each; the span of a
// pointer, and so its class, follows from its address. Everything else goes to malloc.

#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace
{

constexpr std::size_t kGranule = 16;
constexpr std::size_t kLargest = 1024;
constexpr std::size_t kClasses = kLargest / kGranule + 1;
constexpr std::size_t kSpan = std::size_t{1} << 16;
constexpr std::size_t kArena = std::size_t{1} << 30;

struct FreeObject {
    FreeObject* next;
};

/// Zero-initialised before any constructor runs, so that static initialisers may allocate.
struct Pool {
    std::array<FreeObject*, kClasses> free;
    std::array<std::uint8_t, kArena / kSpan> spanClass;
    std::byte* begin;
    std::byte* unused;
    bool failed;
};

constinit Pool g_pool{};

bool Reserve()
{
    void* arena = mmap(nullptr, kArena + kSpan, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED) {
        g_pool.failed = true;
        return false;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(arena);
    g_pool.begin = reinterpret_cast<std::byte*>((address + kSpan - 1) & ~(kSpan - 1));
    g_pool.unused = g_pool.begin;
    return true;
}

/// Cut a fresh span into objects of one class; false once the arena is used up.
bool Refill(std::size_t sizeClass)
{
    if (g_pool.failed || (g_pool.begin == nullptr && !Reserve()) ||
        g_pool.unused == g_pool.begin + kArena) {
        return false;
    }
    std::byte* span = g_pool.unused;
    g_pool.unused += kSpan;
    g_pool.spanClass[static_cast<std::size_t>(span - g_pool.begin) / kSpan] =
        static_cast<std::uint8_t>(sizeClass);
    const std::size_t size = sizeClass * kGranule;
    FreeObject* head = nullptr;
    for (std::size_t i = kSpan / size; i-- > 0;) {
        head = new (span + i * size) FreeObject{head};
    }
    g_pool.free[sizeClass] = head;
    return true;
}

void* Allocate(std::size_t size)
{
    const std::size_t sizeClass = size == 0 ? 1 : (size + kGranule - 1) / kGranule;
    if (sizeClass < kClasses && (g_pool.free[sizeClass] != nullptr || Refill(sizeClass))) {
        FreeObject* object = g_pool.free[sizeClass];
        g_pool.free[sizeClass] = object->next;
        return object;
    }
    return std::malloc(size == 0 ? 1 : size);
}

void Free(void* pointer)
{
    const auto offset =
        reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(g_pool.begin);
    if (g_pool.begin == nullptr || offset >= kArena) {
        std::free(pointer);
        return;
    }
    const std::size_t sizeClass = g_pool.spanClass[offset / kSpan];
    g_pool.free[sizeClass] = new (pointer) FreeObject{g_pool.free[sizeClass]};
}

} // namespace

void* operator new(std::size_t size)
{
    void* pointer = Allocate(size);
    if (pointer == nullptr) {
        throw std::bad_alloc();
    }
    return pointer;
}

void* operator new[](std::size_t size)
{
    return operator new(size);
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept
{
    return Allocate(size);
}

void* operator new[](std::size_t size, const std::nothrow_t&) noexcept
{
    return Allocate(size);
}

void operator delete(void* pointer) noexcept
{
    Free(pointer);
}

void operator delete[](void* pointer) noexcept
{
    Free(pointer);
}

void operator delete(void* pointer, std::size_t) noexcept
{
    Free(pointer);
}

void operator delete[](void* pointer, std::size_t) noexcept
{
    Free(pointer);
}
