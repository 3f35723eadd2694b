extension UnsafeMutablePointer where Pointee: Numeric {
    /// New memory of `count` zeros, which the caller deallocates.
    package static func zeros(_ count: Int) -> UnsafeMutablePointer {
        let memory = allocate(capacity: count)
        memory.initialize(repeating: 0, count: count)
        return memory
    }
}

extension UnsafeMutableBufferPointer where Element: Numeric {
    /// New memory of `count` zeros, which the caller deallocates.
    package static func zeros(_ count: Int) -> UnsafeMutableBufferPointer {
        UnsafeMutableBufferPointer(start: .zeros(count), count: count)
    }
}
