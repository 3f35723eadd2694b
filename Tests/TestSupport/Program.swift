import Foundation

/// Programs that other projects made, to check ours against.
public enum Program {
    /// Where a program is; nil when it is not installed.
    public static func path(_ name: String) -> String? {
        ["/usr/bin/", "/usr/sbin/", "/usr/local/bin/"].map { $0 + name }.first {
            FileManager.default.isExecutableFile(atPath: $0)
        }
    }
}
