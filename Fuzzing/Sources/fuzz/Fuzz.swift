import Glibc

/// The parser that FUZZ_PARSER names.
private let parser = {
    let name = getenv("FUZZ_PARSER").map { String(cString: $0) } ?? ""
    guard let found = Parsers.all.first(where: { $0.name == name }) else {
        let line = "FUZZ_PARSER must be one of: \(Parsers.all.map(\.name).joined(separator: " "))\n"
        _ = write(STDERR_FILENO, line, line.utf8.count)
        exit(64)
    }
    return found.run
}()

/// libFuzzer's door.
@_cdecl("LLVMFuzzerTestOneInput") public func testOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: data, count: data == nil ? 0 : count)
    do {
        try parser(Span(_unsafeElements: bytes))
    } catch {
        // Refused, which is what a parser is for.
    }
    return 0
}

/// The package manager gives every executable a `main` of its own, so libFuzzer's is called from here.
@main enum Fuzz {
    static func main() {
        _ = parser
        var count = CommandLine.argc
        var arguments = CommandLine.unsafeArgv
        exit(runDriver(&count, &arguments, testOneInput))
    }
}

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt
