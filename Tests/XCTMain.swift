import Testing

/// Runs the tests.
///
/// By this name SwiftPM takes it, and searches no index of the sources for tests of XCTest: there are none, and to make an
/// index would take a quarter of a build.
@main struct TestMain {
    static func main() async {
        let arguments = CommandLine.arguments
        // `swift test` asks for those of XCTest first.
        if let place = arguments.firstIndex(of: "--testing-library"), arguments.dropFirst(place + 1).first == "xctest" {
            return
        }
        await Testing.__swiftPMEntryPoint() as Never
    }
}
