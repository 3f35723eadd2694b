// swift-tools-version: 6.2
import PackageDescription

// Built by Scripts/fuzz, which has every module instrumented: -Xswiftc -sanitize=fuzzer,address.
let package = Package(
    name: "fuzzing",
    dependencies: [.package(name: "media-engine", path: "..")],
    targets: [
        .executableTarget(
            name: "fuzz",
            dependencies: [.product(name: "MediaEngine", package: "media-engine")],
            swiftSettings: [
                .swiftLanguageMode(.v6),
                .enableExperimentalFeature("Lifetimes"),
                .treatAllWarnings(as: .error),
            ],
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]
        )
    ]
)
