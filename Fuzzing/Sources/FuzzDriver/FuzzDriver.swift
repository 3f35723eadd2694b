import Glibc

/// A parser that is fuzzed, by its name.
///
/// It may refuse bytes by throwing; it may not trap, hang, or read beyond them. `precondition` in it says what must hold of
/// what it accepts.
package typealias FuzzedParser = (name: String, run: @Sendable (Span<UInt8>) throws -> Void)

/// What libFuzzer calls; set once, before it does.
nonisolated(unsafe) private var run: @Sendable (Span<UInt8>) throws -> Void = { _ in }

/// Fuzzes the parser that FUZZ_PARSER names, by the arguments of the process.
///
/// The package manager gives every executable a `main` of its own, so libFuzzer's is called from here. Before each input
/// libFuzzer clears a counter of every branch that is linked, which is why there are several executables.
package func fuzz(_ parsers: [FuzzedParser]) -> Never {
    let name = getenv("FUZZ_PARSER").map { String(cString: $0) } ?? ""
    guard let found = parsers.first(where: { $0.name == name }) else {
        let line = "FUZZ_PARSER must be one of: \(parsers.map(\.name).joined(separator: " "))\n"
        _ = write(STDERR_FILENO, line, line.utf8.count)
        exit(64)
    }
    run = found.run
    var count = CommandLine.argc
    var arguments = CommandLine.unsafeArgv
    exit(runDriver(&count, &arguments, testOneInput))
}

/// libFuzzer's door.
@_cdecl("LLVMFuzzerTestOneInput") public func testOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: data, count: data == nil ? 0 : count)
    do {
        try run(Span(_unsafeElements: bytes))
    } catch {
        // Refused, which is what a parser is for.
    }
    return 0
}

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// The bytes as an array.
package func array(_ bytes: Span<UInt8>) -> [UInt8] {
    bytes.withUnsafeBufferPointer { Array($0) }
}
