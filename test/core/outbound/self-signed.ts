/** A self-signed certificate for `localhost` and its key, valid for a century. Neither is used outside these tests. */
export const certificate = `-----BEGIN CERTIFICATE-----
MIIBlTCCATugAwIBAgIUOpzbnKY2IaxSoL1aMeBwXpbBe9UwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTAxMjcyN1oYDzIxMjYxMDI4
MDEyNzI3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATp8LtAsZk28emUwCDgCi92pU+4un3OoTyHJaU+5L48qbU/HgWonKXr
hqyTzlKnEwPour8mWAbe1rHqNYPztV9ro2kwZzAdBgNVHQ4EFgQUlr+iuN1khbyg
To9DMqkZTm7Cc4swHwYDVR0jBBgwFoAUlr+iuN1khbygTo9DMqkZTm7Cc4swDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
SAAwRQIgEW59lUh0X/XlOoD/NNXiD1F/V/2istyyEEMbNf5b7S4CIQDRSgyfYx7I
tVZrJAqn86Y1L6AD3yLbsb0addSACHyI9w==
-----END CERTIFICATE-----
`

export const certificateKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgUz1FYV+Vth4oZOVf
hCSW9kInZTRlDWmmkH44IcrG2VKhRANCAATp8LtAsZk28emUwCDgCi92pU+4un3O
oTyHJaU+5L48qbU/HgWonKXrhqyTzlKnEwPour8mWAbe1rHqNYPztV9r
-----END PRIVATE KEY-----
`
